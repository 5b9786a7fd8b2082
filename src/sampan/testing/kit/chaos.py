"""Will an operator survive? It runs, everything goes wrong, and then all must be well again.

Job: run an operator against a cluster; faults, nodes that vanish and restarts of it by seed; then
    peace, and the test's invariants.
Invariant: the operator is ended, whatever happens.
"""

import random
import time
from collections.abc import Callable, Mapping

from sampan.core.fast_dataclass import dataclass
from sampan.testing.kit.cluster import Cluster
from sampan.testing.kit.expectations import NotAsExpected
from sampan.testing.kit.operator_process import OperatorProcess, Work

STEP_SECONDS = 0.5


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
    operator: Work,
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
        process = OperatorProcess(operator, str(cluster.kubeconfig), output, cluster.control)
        try:
            _disturb(cluster, process, random.Random(used), used, how)
            process.check()
            _expect(cluster, invariants, how.peace_seconds, used, process)
        finally:
            process.end()
    return used


def _disturb(
    cluster: Cluster, operator: OperatorProcess, rng: random.Random, seed: int, how: Chaos
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
    operator: OperatorProcess,
) -> None:
    for text, holds in invariants.items():
        if not cluster.clock.wait_until(_asking(holds), seconds):
            raise NotAsExpected(
                f"expected within {seconds} s of peace: {text}\nseed={seed}; faults: "
                f"{cluster.faults_told()}\nthe operator's last words:\n{operator.last_words()}"
            )


def _asking(question: Callable[[], object]) -> Callable[[], bool]:
    return lambda: bool(question())
