"""`sampan up` as a user runs it: a process of its own, in a data directory of its own.

Job: start it, know when it is ready, stop or kill it, start it again on the same data.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.network.bridge import PodNetwork
from tests.support.parts.kubectl import Kubectl
from tests.support.parts.leftovers import leftovers, network_of
from tests.support.parts.processes import Program
from tests.support.places import PYTHONPATH

# `make e2e RUNTIME=cri`: every story on nodes of the other runtime.
RUNTIME = os.environ.get("SAMPAN_TEST_RUNTIME", "native")
RUNTIMES = (RUNTIME,) if "SAMPAN_TEST_RUNTIME" in os.environ else ("native", "cri")


def registry_flags(address: str, runtime: str = RUNTIME) -> tuple[str, ...]:
    """A registry on this machine is asked only by name where the node asks registries itself."""
    named = ("--registry-mirror", f"{address}=http://{address}")
    return named if runtime == "native" else ()


class SampanProcess:
    def __init__(self, root: Path, *flags: str, where: Sequence[str] = ()) -> None:
        """`where` starts it somewhere else: `nsenter --net=...`."""
        self.root, self.flags, self.where = root, flags, where
        self.data_dir = root / "data"
        self.kubeconfig = root / "kubeconfig"
        self.output = root / "sampan.out"
        self.program: Program | None = None
        self._network: PodNetwork | None = None
        self._logs: list[Path] = []
        (root / "home").mkdir(exist_ok=True, parents=True)

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.kubeconfig, self.root / "home", where=self.where)

    @property
    def pid(self) -> int:
        assert self.program is not None
        return self.program.process.pid

    def up(self, *more: str, seconds: float = 90.0) -> "SampanProcess":
        ready = self.root / "ready"
        ready.unlink(missing_ok=True)
        self.program = Program(
            [
                *self.where, *sampan_command("up"), "--data-dir", str(self.data_dir),
                "--kubeconfig", str(self.kubeconfig), "--port", "0",
                "--ready-file", str(ready), *self.flags, *more,
            ],
            self.output,
            environment(),
        )  # fmt: skip
        self.program.wait_until(ready.exists, seconds)
        self._network = network_of(self.data_dir) or self._network
        return self

    def stop(self) -> int:
        assert self.program is not None
        return self.program.stop(60)

    def kill(self) -> None:
        """As `kill -9`: no chance to tidy up."""
        assert self.program is not None
        self.program.kill()

    def reset(self) -> None:
        """Remove whatever is left of it, running or not."""
        if self.data_dir.exists():
            links = (self.data_dir / "logs" / "pods").glob("*")
            self._logs = [link.readlink() for link in links if link.is_symlink()]
            self.run("reset", "--yes")
        if self.program is not None:
            self.program.process.wait(60)

    def leftovers(self) -> dict[str, list[str]]:
        """Of its whole life, as far as we started it."""
        logs = [str(place) for place in self._logs if place.exists()]
        return leftovers(self.data_dir, self._network) | ({"logs": logs} if logs else {})

    def run(self, verb: str, *arguments: str) -> str:
        """Another verb on the same data directory."""
        command = [*self.where, *sampan_command(verb), *arguments]
        command += ["--data-dir", str(self.data_dir)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment(),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout


def sampan_command(*verb: str) -> list[str]:
    return [sys.executable, "-m", "sampan", *verb]


def environment() -> dict[str, str]:
    """The child finds the same sampan as the test, installed or not."""
    return {**os.environ, "PYTHONPATH": PYTHONPATH, "PYTHONUNBUFFERED": "1"}
