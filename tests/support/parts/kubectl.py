"""The real kubectl as a witness.

Job: run it against one kubeconfig; give text or objects; fail with what it printed.
"""

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import orjson

from sampan.api.objects import Obj
from tests.support.parts.processes import eventually


class KubectlFailure(AssertionError):
    def __init__(self, command: list[str], done: "subprocess.CompletedProcess[str]") -> None:
        said = f"{done.stdout}\n{done.stderr}".strip()
        super().__init__(f"{' '.join(command)} exited with {done.returncode}:\n{said}")
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr


class Kubectl:
    def __init__(
        self,
        kubeconfig: Path,
        home: Path,
        binary: str = "kubectl",
        *,
        where: Sequence[str] = (),
    ) -> None:
        """`where` starts it somewhere else: `nsenter --net=...`."""
        path = shutil.which(binary)
        assert path, "kubectl is not installed: make test installs it"
        self._command = [*where, path]
        # A home of its own: the discovery cache of another cluster must not be taken for ours.
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def __call__(self, *arguments: str, stdin: str | None = None, seconds: float = 60.0) -> str:
        command = [*self._command, *arguments]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=seconds, env=self._env
        )
        if done.returncode != 0:
            raise KubectlFailure(command, done)
        return done.stdout

    def fails(self, *arguments: str, stdin: str | None = None) -> str:
        """What it says on standard error when it must not succeed."""
        try:
            said = self(*arguments, stdin=stdin)
        except KubectlFailure as failure:
            return failure.stderr
        raise AssertionError(f"kubectl {' '.join(arguments)} succeeded:\n{said}")

    def get(self, *arguments: str) -> Obj:
        found: Obj = orjson.loads(self("get", *arguments, "-o", "json"))
        return found

    def exists(self, *arguments: str) -> bool:
        return bool(self("get", *arguments, "--ignore-not-found", "-o", "name").strip())

    def apply(self, manifest: str) -> str:
        return self("apply", "-f", "-", stdin=manifest)

    def phase(self, pod: str, namespace: str = "default") -> str:
        found = self("get", "pod", pod, "-n", namespace, "-o", "jsonpath={.status.phase}")
        return found.strip()

    def wait_phase(self, pod: str, phase: str, namespace: str = "default") -> None:
        eventually(lambda: self.phase(pod, namespace) == phase, 60)

    def background(self, *arguments: str, output: Path) -> "subprocess.Popen[bytes]":
        """For what goes on until it is stopped: `get -w`, `logs -f`, `port-forward`."""
        with output.open("wb") as sink:
            return subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=self._env,
            )


@functools.cache
def client_minor() -> int:
    """32 for a kubectl 1.32: some texts and verbs are of one version, or came with one."""
    command = ["kubectl", "version", "--client", "-o", "json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(orjson.loads(shown.stdout)["clientVersion"]["minor"].rstrip("+"))
