"""The kit's side in the process whose tests want clusters.

Job: start the zygote with the first cluster that is asked for, keep one template for each kind of
    cluster, have it forked; a process for each cluster with a real node; stop everything at the
    end.
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
from sampan.core.fast_dataclass import dataclass
from sampan.testing.kit import messages
from sampan.testing.kit.kit_files import DATA, KEPT, KEYS, LOG
from sampan.testing.kit.spec import CannotStart, Read, Spec, files_of

PATIENCE_SECONDS = 60.0
TEMPLATE_SEED = 0
PREFIX = "sampan-kit-"
PROGRAMS = "sampan.testing.kit.process"


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


@dataclass(frozen=True, slots=True)
class Started:
    """A cluster that answers."""

    control: Control
    directory: Path
    keys: Path  # the certificates of its administrator and of its servers
    port: int
    pid: int
    process: subprocess.Popen[bytes] | None = None  # where it is a child of this process

    def end(self) -> None:
        """Returns when nothing of it is left."""
        self.control.end()
        if self.process is not None:
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Launcher:
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.base = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._log = self.base / LOG
        self._templates: dict[Spec, tuple[Read, Control]] = {}
        self._real: list[Control] = []  # of clusters whose node is this machine
        self._count = itertools.count()
        self._lock, self._starting = threading.Lock(), threading.Lock()
        self._zygote: Control | None = None
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def new(self, spec: Spec, seed: int | None) -> Started:
        if spec.real:
            return self._with_real_node(spec, seed)
        if spec.store != "memory":
            return self._started(*self._hold(spec, seed, serves=True))
        with self._lock:
            template = self._template(spec)
        return self.fork(template, seed)

    def _template(self, spec: Spec) -> Control:
        """Its files are read again where they have changed since."""
        now, known = files_of(spec), self._templates.get(spec)
        if known is not None and known[0] == now:
            return known[1]
        if known is not None:
            del self._templates[spec]
            known[1].close()
        # All that a test's seed decides comes after the fork.
        made = self._hold(spec, TEMPLATE_SEED, serves=False)[0]
        self._templates[spec] = now, made
        return made

    def fork(self, origin: Control, seed: int | None) -> Started:
        directory, (ours, theirs) = self._directory(), messages.pair()
        control = Control(ours, self._log)
        with theirs:
            origin.tell("fork", theirs, dir=str(directory), seed=seed)
        return self._started(control, directory)

    def keep(self) -> None:
        """The directory stays after the end."""
        (self.base / KEPT).touch()

    def close(self) -> None:
        if os.getpid() != self.pid:
            return
        for real in self._real:
            real.end()
        templates = [control for _, control in self._templates.values()]
        for control in (*templates, *filter(None, [self._zygote])):
            control.close()
        if self._process is not None:
            _await_end(self._process)
        if not (self.base / KEPT).exists():
            shutil.rmtree(self.base, ignore_errors=True)

    def _started(self, control: Control, directory: Path) -> Started:
        ready = control.answer()
        return Started(control, directory, self.base / KEYS, ready["port"], ready["pid"])

    def _hold(self, spec: Spec, seed: int | None, *, serves: bool) -> tuple[Control, Path]:
        """By a process that the zygote forks; a template is there when this returns."""
        directory, (ours, theirs) = self._directory(), messages.pair()
        control = Control(ours, self._log)
        with theirs:
            self._first_process().tell(
                "hold", theirs, spec=spec.as_dict(), seed=seed, serves=serves, dir=str(directory)
            )
        if not serves:
            control.answer()
        return control, directory

    def _first_process(self) -> Control:
        with self._starting:
            if self._zygote is None:
                self._zygote, self._process = _program("zygote", self.base)
                self._zygote.answer()
            return self._zygote

    def _with_real_node(self, spec: Spec, seed: int | None) -> Started:
        """In a directory that its process removes, when nothing is mounted there any more."""
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        control, process = _program("real_cluster", directory)
        try:
            ready = control.ask("hold", spec=spec.as_dict(), seed=seed)
        except Refused as error:
            control.end()
            process.wait()
            raise CannotStart(str(error)) from None
        self._real.append(control)
        keys = directory / DATA / KEYS
        return Started(control, directory, keys, ready["port"], ready["pid"], process)

    def _directory(self) -> Path:
        path = self.base / f"{next(self._count):05d}"
        path.mkdir()
        return path


def _program(name: str, directory: Path) -> tuple[Control, subprocess.Popen[bytes]]:
    """One of sampan.testing.kit.process, with its end of a control socket."""
    ours, theirs = messages.pair()
    log = directory / LOG
    with theirs, log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", f"{PROGRAMS}.{name}", str(theirs.fileno()), str(directory)],
            pass_fds=[theirs.fileno()], cwd=directory, env=_environment(),
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    return Control(ours, log), process


def _await_end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    if process.poll() is None:
        process.kill()
        process.wait()


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
