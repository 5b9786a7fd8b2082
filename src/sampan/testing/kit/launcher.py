"""The kit's side in the process whose tests want clusters.

Job: start the zygote with the first cluster that is asked for, keep one template for each kind of
    cluster, have it forked; stop everything at the end.
Invariant: one launcher for a process; a forked process (pytest-forked and the like) starts anew.
"""

import atexit
import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import sampan
from sampan.testing.kit import messages
from sampan.testing.kit.spec import CannotStart, Spec
from sampan.testing.kit.zygote_files import KEPT, LOG

PATIENCE_SECONDS = 60.0


class ClusterGone(Exception):
    """The process of the cluster ended."""


class Refused(Exception):
    """The cluster's process cannot do what was asked; one sentence."""


class Control:
    """One end of a control socket: ask, and wait for the answer."""

    def __init__(self, end: socket.socket, log: Path) -> None:
        self._end, self._log = end, log
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    def ask(
        self,
        do: str,
        seconds: float | None = PATIENCE_SECONDS,
        **more: Any,
    ) -> dict[str, Any]:
        """Raises Refused with what was answered, ClusterGone where nobody answers."""
        with self._lock:
            number = next(self._ids)
            try:
                self._end.settimeout(seconds)
                messages.send(self._end, {"do": do, "id": number, **more})
                return self._answer(number)
            except OSError as error:
                raise ClusterGone(f"the cluster does not answer: {error}{self._why()}") from error

    def tell(self, do: str, enclosed: socket.socket, **more: Any) -> None:
        """The answer comes through the other end of what is enclosed."""
        with self._lock:
            try:
                messages.send(self._end, {"do": do, "id": next(self._ids), **more}, enclosed)
            except OSError as error:
                raise ClusterGone(f"the cluster is gone: {error}{self._why()}") from error

    def answer(self) -> dict[str, Any]:
        """Of whoever was sent the other end. Raises CannotStart."""
        with self._lock:
            self._end.settimeout(PATIENCE_SECONDS)
            try:
                return self._answer(None)
            except Refused as error:
                self._end.close()
                raise CannotStart(str(error)) from None

    def close(self) -> None:
        self._end.close()

    def end(self) -> None:
        """Returns when the other side's process is over."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)
            self._end.settimeout(PATIENCE_SECONDS)
            while messages.receive(self._end) is not None:
                pass
        self._end.close()

    def _answer(self, number: int | None) -> dict[str, Any]:
        while (heard := messages.receive(self._end)) is not None:
            answer, _ = heard
            if number is None or answer["id"] == number:
                if "error" in answer:
                    raise Refused(answer["error"])
                return answer
        raise ClusterGone(f"the process of the cluster ended{self._why()}")

    def _why(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            return f": {lines[-1]}" if lines else ""
        return ""


class Launcher:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.base = Path(tempfile.mkdtemp(prefix="sampan-kit-"))
        self._log = self.base / LOG
        self._templates: dict[Spec, Control] = {}
        self._count = itertools.count()
        self._lock = threading.Lock()
        ours, theirs = messages.pair()
        with theirs, self._log.open("wb") as log:
            program = [sys.executable, "-m", "sampan.testing.kit.process.zygote"]
            self._process = subprocess.Popen(
                [*program, str(theirs.fileno()), str(self.base)],
                pass_fds=[theirs.fileno()], cwd=self.base, env=_environment(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._zygote = Control(ours, self._log)
        self._zygote.answer()
        atexit.register(self.close)

    def new(self, spec: Spec, seed: int | None) -> tuple[Control, Path, dict[str, Any]]:
        """A cluster that answers: its control, its directory, its port and pid."""
        if spec.store != "memory":
            return self._from_zygote(spec, seed, serves=True)
        with self._lock:
            if spec not in self._templates:
                self._templates[spec] = self._from_zygote(spec, seed, serves=False)[0]
            template = self._templates[spec]
        return self.fork(template, seed)

    def fork(self, origin: Control, seed: int | None) -> tuple[Control, Path, dict[str, Any]]:
        directory, (ours, theirs) = self._directory(), messages.pair()
        control = Control(ours, self._log)
        with theirs:
            origin.tell("fork", theirs, dir=str(directory), seed=seed)
        return control, directory, control.answer()

    def keep(self) -> None:
        """The directory stays after the end."""
        (self.base / KEPT).touch()

    def close(self) -> None:
        if os.getpid() != self.pid or self._process.poll() is not None:
            return
        for control in (*self._templates.values(), self._zygote):
            control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if not (self.base / KEPT).exists():
            shutil.rmtree(self.base, ignore_errors=True)

    def _from_zygote(
        self, spec: Spec, seed: int | None, *, serves: bool
    ) -> tuple[Control, Path, dict[str, Any]]:
        directory, (ours, theirs) = self._directory(), messages.pair()
        control = Control(ours, self._log)
        with theirs:
            self._zygote.tell(
                "hold", theirs, spec=spec.as_dict(), seed=seed, serves=serves, dir=str(directory)
            )
        return control, directory, control.answer()

    def _directory(self) -> Path:
        path = self.base / f"{next(self._count):05d}"
        path.mkdir()
        return path


_launchers: list[Launcher] = []
_making = threading.Lock()


def launcher() -> Launcher:
    """That of this process."""
    with _making:
        if not _launchers or _launchers[-1].pid != os.getpid():
            _launchers[:] = [Launcher()]
        return _launchers[-1]


def _environment() -> dict[str, str]:
    """The child finds the same sampan, and its sets are in the same order each time."""
    source = str(Path(sampan.__file__).parents[1])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
