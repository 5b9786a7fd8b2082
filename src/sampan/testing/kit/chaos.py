"""Will an operator survive? It runs, everything goes wrong, and then all must be well again.

Job: run an operator against a cluster; faults, nodes that vanish and restarts of it by seed; then
    peace, and the test's invariants.
Invariant: the operator is ended, whatever happens.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from sampan.core.fast_dataclass import dataclass
from sampan.testing.kit.cluster import Cluster
from sampan.testing.kit.expectations import NotAsExpected
from sampan.testing.kit.forked_function import ForkedFunction

STEP_SECONDS = 0.5
END_SECONDS = 10.0
OUTPUT_LINES = 15


@dataclass(frozen=True, slots=True)
class Chaos:
    """How bad it gets."""

    seconds: float = 10.0
    rate: float = 0.2  # of requests that meet a fault
    restarts: bool = True  # the operator is killed and started again
    nodes: bool = True  # nodes lose their network for a while
    peace_seconds: float = 60.0  # until the invariants must hold


def chaos(
    cluster: Cluster,
    operator: Sequence[str] | Callable[[str], object],
    invariants: Mapping[str, Callable[[], object]],
    *,
    seed: int | None = None,
    how: Chaos | None = None,
) -> int:
    """`operator` is a command, which finds the cluster in $KUBECONFIG, or a function, which runs in
    a process of its own and gets the kubeconfig's path. `invariants` are questions by what they are
    about. Raises NotAsExpected with the seed; returns it."""
    how = how or Chaos()
    used = random.SystemRandom().randrange(10_000) if seed is None else seed
    with (cluster.directory / "operator.log").open("w+b") as output:
        process = _Operator(operator, str(cluster.kubeconfig), output)
        try:
            _disturb(cluster, process, random.Random(used), used, how)
            process.check()
            _expect(cluster, invariants, how.peace_seconds, used, output)
        finally:
            process.end()
    return used


class _Operator:
    def __init__(
        self, work: Sequence[str] | Callable[[str], object], kubeconfig: str, output: IO[bytes]
    ) -> None:
        self._work, self._output = work, output
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig}
        self._process = self._started()

    def restart(self) -> None:
        self.kill()
        self._process = self._started()

    def check(self) -> None:
        if self._process.poll() is not None:
            raise NotAsExpected(
                f"expected that the operator goes on; it ended with {self._process.returncode}:\n"
                + _tail(self._output)
            )

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def _started(self) -> "subprocess.Popen[bytes] | ForkedFunction":
        if callable(self._work):
            return ForkedFunction(self._work, self._environment["KUBECONFIG"], self._output)
        return subprocess.Popen(
            self._work, env=self._environment, stdin=subprocess.DEVNULL, stdout=self._output,
            stderr=subprocess.STDOUT,
        )  # fmt: skip


def _disturb(
    cluster: Cluster, operator: _Operator, rng: random.Random, seed: int, how: Chaos
) -> None:
    until = time.monotonic() + how.seconds
    nodes, cut = cluster.nodes.names(), set[str]()
    cluster.start_faults(seed=seed, rate=how.rate)
    while time.monotonic() < until:
        time.sleep(STEP_SECONDS)
        match rng.randrange(4):
            case 0 if how.restarts:
                operator.restart()
            case 1 if how.nodes and nodes:
                cluster.nodes.cut(node := rng.choice(nodes))
                cut.add(node)
            case 2 if cut:
                cluster.nodes.mend(node := sorted(cut)[0])
                cut.discard(node)
    for node in cut:
        cluster.nodes.mend(node)
    cluster.stop_faults()


def _expect(
    cluster: Cluster,
    invariants: Mapping[str, Callable[[], object]],
    seconds: float,
    seed: int,
    output: IO[bytes],
) -> None:
    for text, holds in invariants.items():
        if not cluster.clock.wait_until(_asking(holds), seconds):
            raise NotAsExpected(
                f"expected within {seconds} s of peace: {text}\nseed={seed}; faults: "
                f"{cluster.faults_told()}\nthe operator's last words:\n{_tail(output)}"
            )


def _asking(question: Callable[[], object]) -> Callable[[], bool]:
    return lambda: bool(question())


def _tail(output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read().decode(errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-OUTPUT_LINES:])
