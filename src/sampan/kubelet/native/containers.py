"""The containers of a node without a container runtime: conmon and crun from begin to end.

Job: create, start, stop and remove containers; find them again after a restart; say how each stands
    and tell when one ends; programs and logs inside.
Invariant: what failed halfway is taken back; a container's end is told once, when its log is whole.
Owner: NativeRuntime.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.files.remove_tree import remove_tree
from sampan.core.tasks import all_of, finish
from sampan.kubelet.cgroups.delegation import offered_controllers
from sampan.kubelet.contracts.runtime import (
    CommandTimedOut,
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    ContainerUser,
    ExecResult,
    Layer,
    LinuxResources,
    RuntimeEvent,
    RuntimeFailure,
    SandboxSpec,
)
from sampan.kubelet.native import oci_spec
from sampan.kubelet.native.bundles import Bundles, SandboxPlace
from sampan.kubelet.native.failures import translated_failures
from sampan.kubelet.native.image_mounts import ContainerImages
from sampan.kubelet.native.records import ContainerRecord, Records, SandboxRecord
from sampan.kubelet.native.root_filesystem import unmount_root, written_above
from sampan.kubelet.native.sandboxes import Sandboxes
from sampan.kubelet.runtime.container_process import (
    prepare_host,
    signal_number,
    until_sigterm_is_heard,
)
from sampan.runtime import monitor
from sampan.runtime.error_messages import creation_failure, process_message
from sampan.runtime.images.image_store import StoredImage
from sampan.runtime.monitor import ConmonFiles, ContainerFailure, Ended, Monitor
from sampan.runtime.programs import Programs
from sampan.runtime.spawn import PIPE, Launch, spawn
from sampan.runtime.stale_processes import forget_ended, remove_stale

_KILL_SECONDS = 60.0
_LAYER_SECONDS = 10.0  # for so long a measured layer is taken as it was
_START_ERROR = 128


@dataclass(slots=True)
class Container:
    record: ContainerRecord
    uid: str
    monitor: Monitor | None = None
    ended: Ended | None = None
    layer: Layer = Layer()
    layer_at: float = 0.0

    @property
    def state(self) -> ContainerState:
        if self.ended is not None or self.record.failure:
            return ContainerState.EXITED
        return ContainerState.RUNNING if self.record.started_at else ContainerState.CREATED


class Containers:
    def __init__(
        self, directory: Path, programs: Programs, sandboxes: Sandboxes, clock: Clock
    ) -> None:
        self._programs, self._sandboxes, self._clock = programs, sandboxes, clock
        self._records = Records(directory, ContainerRecord)
        self._bundles = Bundles(programs, directory.parent / "seccomp")
        self._all: dict[str, Container] = {}
        self._listeners: set[asyncio.Queue[RuntimeEvent]] = set()

    async def find_again(self) -> None:
        """What an earlier process made; what it left halfway goes."""
        for record in self._records.all():
            sandbox = self._sandboxes.get(record.sandbox_id)
            self._all[record.id] = Container(record, sandbox.uid if sandbox else "")
            if sandbox is None:
                await self.remove(record.id)
            elif record.started_at or record.failure:
                self._adopt(self._all[record.id])
            elif self._files(record.id).exit_code.exists():
                await self._undo_start(record.id)
        for left in self._records.broken():
            await asyncio.to_thread(self._forget, left)

    async def _undo_start(self, container_id: str) -> None:
        """Its start was cut off: it is as it was when it had been created."""
        with translated_failures("the container"):
            place = self._records.place(container_id)
            await remove_stale(self._programs, container_id, place)
            remove_tree(self._files(container_id).exit_code)

    def _adopt(self, container: Container) -> None:
        record = container.record
        if record.failure:
            return
        try:
            self._watch(container, Monitor(record.id, self._files(record.id)))
        except ProcessLookupError:
            monitor.kill_orphan(record.id, self._files(record.id))
            container.ended = self._end_of(record.id)

    def close(self) -> None:
        """They go on: conmon has them."""
        for container in self._all.values():
            if container.monitor is not None:
                container.monitor.close()

    def _files(self, container_id: str) -> ConmonFiles:
        return ConmonFiles(self._records.place(container_id))

    def _watch(self, container: Container, watched: Monitor) -> None:
        container.monitor = watched
        watched.watch(lambda: self._has_ended(container))

    def _end_of(self, container_id: str) -> Ended:
        """Without a word of conmon's, somebody killed it: the container goes with it."""
        found = monitor.ended_by_file(container_id, self._files(container_id))
        return found or Ended(monitor.LOST, self._clock.now())

    def _has_ended(self, container: Container) -> None:
        ended = container.ended = self._end_of(container.record.id)
        event = RuntimeEvent(container.uid, container.record.id, ended.exit_code, ended.at)
        for listener in self._listeners:
            listener.put_nowait(event)

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Queue[RuntimeEvent]]:
        queue: asyncio.Queue[RuntimeEvent] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)

    # ---- what is there

    def ids(self) -> list[str]:
        return list(self._all)

    def of_sandbox(self, sandbox_id: str) -> list[str]:
        return [
            container.record.id
            for container in self._all.values()
            if container.record.sandbox_id == sandbox_id
        ]

    def statuses(self, sandbox_ids: Collection[str]) -> list[ContainerStatus]:
        return [
            _status(container)
            for container in self._all.values()
            if container.record.sandbox_id in sandbox_ids
        ]

    def _get(self, container_id: str) -> Container:
        try:
            return self._all[container_id]
        except KeyError:
            raise RuntimeFailure(f"container {container_id} does not exist") from None

    def running(self, container_id: str) -> Path:
        """Its directory. Raises RuntimeFailure."""
        if self._get(container_id).state is not ContainerState.RUNNING:
            raise RuntimeFailure(f"container {container_id} is not running")
        return self._records.place(container_id)

    def closes_stdin(self, container_id: str) -> bool:
        record = self._get(container_id).record
        return record.stdin_once and not record.terminal

    # ---- from beginning to end

    async def create(
        self,
        surrounding: SandboxRecord,
        container: ContainerSpec,
        sandbox: SandboxSpec,
        images: ContainerImages,
    ) -> str:
        prepare_host(container, sandbox.log_directory)
        image = images.own.image
        record = ContainerRecord(
            secrets.token_hex(32), surrounding.id, container.name, container.attempt,
            container.user_image, _image_id(image), self._clock.now(), dict(container.labels),
            dict(container.annotations), images.diff_ids(),
            os.path.join(sandbox.log_directory, container.log_path),
            image.config.stop_signal or "SIGTERM", container.tty, container.stdin,
            container.stdin_once,
        )  # fmt: skip
        made = False
        try:
            with translated_failures("the container"):
                processes = self._processes_of(container.security.process_namespace_of)
                around = SandboxPlace(surrounding, self._sandboxes.place(surrounding.id), sandbox)
                surroundings = self._bundles.surroundings(record, around, processes)

                def make() -> oci_spec.Identity:
                    self._records.put(record)
                    place = self._records.place(record.id)
                    return self._bundles.write(place, container, images, around, surroundings)

                user = await asyncio.to_thread(make)
            made = True
        finally:
            if not made:
                await asyncio.to_thread(self._forget, record.id)
        record = replace(record, user=(user.uid, user.gid, *user.groups))
        self._all[record.id] = Container(record, surrounding.uid)
        return record.id

    def _processes_of(self, container_id: str) -> str:
        """The process namespace of a running container. Raises RuntimeFailure."""
        if not container_id:
            return ""
        target = self._get(container_id).monitor
        if target is None or not target.pid:
            raise RuntimeFailure("the container whose processes are to be seen does not run")
        return f"/proc/{target.pid}/ns/pid"

    async def start(self, container_id: str) -> None:
        await finish(self._start(container_id))

    async def _start(self, container_id: str) -> None:
        container = self._get(container_id)
        record, files = container.record, self._files(container_id)
        stdio = monitor.Stdio(record.log_path, record.terminal, record.stdin, record.stdin_once)
        try:
            await monitor.create(self._programs, container_id, files, stdio)
            self._watch(container, Monitor(container_id, files))
            self._put(container, replace(record, started_at=self._clock.now()))
            await monitor.start(self._programs, container_id)
        except (ContainerFailure, ProcessLookupError) as error:
            failure = self._failure_of(container_id, str(error) or "its monitor ended")
            self._put(container, replace(record, failure=failure, failed_at=self._clock.now()))
            raise RuntimeFailure(failure) from error
        except OSError as error:
            raise RuntimeFailure(f"failed to start container: {error}") from error

    def _failure_of(self, container_id: str, said: str) -> str:
        with contextlib.suppress(OSError, ValueError):
            text = (self._records.place(container_id) / "config.json").read_text()
            program = json.loads(text)["process"]["args"][0]
            said = creation_failure(self._programs.name, said, program)
        return said

    def _put(self, container: Container, record: ContainerRecord) -> None:
        self._records.put(record)
        container.record = record

    async def stop(self, container_id: str, grace_seconds: float) -> None:
        container = self._all.get(container_id)
        if container is None or container.state is not ContainerState.RUNNING:
            return
        if grace_seconds > 0:
            sent = await self.signal(container_id, container.record.stop_signal, grace_seconds)
            if sent:
                return
        await self._kill(container)

    async def _kill(self, container: Container) -> None:
        watched = container.monitor
        if watched is None:
            return
        watched.send(signal.SIGKILL)
        if not await self._ends_within(watched, _KILL_SECONDS):
            raise RuntimeFailure(f"container {container.record.id} cannot be killed")

    async def _ends_within(self, watched: Monitor, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await watched.ended.wait()
        except TimeoutError:
            return False
        return True

    async def signal(self, container_id: str, name: str, seconds: float) -> bool:
        container = self._all.get(container_id)
        if container is None or container.monitor is None or container.ended is not None:
            return True
        watched = container.monitor
        number = signal_number(name if name.startswith("SIG") else f"SIG{name}")
        await self._until_it_hears(container)
        watched.send(number)
        return await self._ends_within(watched, seconds)

    async def _until_it_hears(self, container: Container) -> None:
        watched = container.monitor
        assert watched is not None
        since_start = self._clock.now() - container.record.started_at
        await until_sigterm_is_heard(lambda: watched.pid or 0, since_start, self._clock)

    async def update(self, container_id: str, resources: LinuxResources) -> None:
        self._get(container_id)
        place = self._records.place(container_id)
        file = place / "resources.json"
        with translated_failures("the container"):  # it may be on its way out
            cgroup = json.loads((place / "config.json").read_text())["linux"]["cgroupsPath"]
            offered = offered_controllers(cgroup.rpartition("/")[0])
            file.write_text(json.dumps(oci_spec.resources(resources, offered)))
            await monitor.call(self._programs, "update", "--resources", str(file), container_id)

    async def remove(self, container_id: str) -> None:
        container = self._all.get(container_id)
        if container is None:
            return
        await finish(self._remove(container))

    async def _remove(self, container: Container) -> None:
        await self._kill(container) if container.state is ContainerState.RUNNING else None
        container_id = container.record.id
        if container.monitor is not None:
            container.monitor.close()
        with translated_failures("the container"):
            if not await asyncio.to_thread(self._take_away, container_id):
                await self._delete(container_id)
                await asyncio.to_thread(self._forget, container_id)
        self._all.pop(container_id, None)

    def _take_away(self, container_id: str) -> bool:
        """All of it, in one step; False: the OCI runtime has to be asked first."""
        place = self._records.place(container_id)
        was_started = ConmonFiles(place).exit_code.exists()
        if was_started and not forget_ended(self._programs, container_id, place):
            return False
        self._forget(container_id)
        return True

    async def _delete(self, container_id: str) -> None:
        try:
            await monitor.call(self._programs, "delete", "--force", container_id)
        except ContainerFailure:  # it never was whole, or is gone
            await remove_stale(self._programs, container_id, self._records.place(container_id))

    def _forget(self, container_id: str) -> None:
        unmount_root(self._records.place(container_id))
        self._records.remove(container_id)

    # ---- inside

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        self.running(container_id)
        launch, pid_file, forget = self.exec_call(container_id, command, terminal=False)
        try:
            running = await spawn(replace(launch, stdout=PIPE, stderr=PIPE))
            assert running.stdout is not None, "a pipe was asked for"
            assert running.stderr is not None, "a pipe was asked for"
            try:
                async with asyncio.timeout(timeout_seconds or None):
                    said = await all_of((running.stdout.read(), running.stderr.read()))
                    code = await running.wait()
            except TimeoutError:
                text = f'command "{" ".join(command)}" timed out'
                raise CommandTimedOut(text) from None
            finally:
                if running.returncode is None:
                    _kill_by_file(pid_file)
                await running.end()
            output, complaint = said
            if not pid_file.exists():
                text = complaint.decode(errors="replace").strip()
                why = process_message(text, command[0]) or text
                raise RuntimeFailure(f"failed to exec in container: {why}")
            return ExecResult(code, output, complaint)
        except OSError as error:
            raise RuntimeFailure(f"failed to exec in container: {error}") from error
        finally:
            forget()

    def exec_call(
        self, container_id: str, command: Sequence[str], *, terminal: bool
    ) -> tuple[Launch, Path, Callable[[], None]]:
        """A further program in a container: the call of the OCI runtime, the file that its pid
        will be in, and what to do when it is over."""
        place = self._records.place(container_id)
        with translated_failures("the container"):
            said: dict[str, Any] = json.loads((place / "config.json").read_text())["process"]
            said |= {"args": list(command), "terminal": terminal}
            word = secrets.token_hex(8)
            process, pid_file = place / f"exec-{word}.json", place / f"exec-{word}.pid"
            process.write_text(json.dumps(said))
        options = ("--process", str(process), "--pid-file", str(pid_file))

        def forget() -> None:
            for file in (process, pid_file):
                file.unlink(missing_ok=True)

        return self._programs.call("exec", *options, container_id), pid_file, forget

    def reopen_log(self, container_id: str) -> None:
        self._get(container_id)
        with translated_failures("the log"):
            monitor.reopen_log(self._files(container_id))

    async def layer(self, container_id: str) -> Layer:
        container = self._get(container_id)
        now = self._clock.monotonic()
        if not container.layer_at or now - container.layer_at > _LAYER_SECONDS:
            place = self._records.place(container_id)
            container.layer = await asyncio.to_thread(written_above, place)
            container.layer_at = now
        return container.layer


def _status(container: Container) -> ContainerStatus:
    record, ended = container.record, container.ended
    status = ContainerStatus(
        record.id,
        record.sandbox_id,
        record.name,
        record.attempt,
        container.state,
        record.image,
        record.image_id,
        record.created_at,
        record.started_at,
        log_path=record.log_path,
        user=ContainerUser(record.user[0], record.user[1], record.user[2:])
        if record.user
        else None,
        labels=record.labels,
        annotations=record.annotations,
    )
    if record.failure:
        return replace(
            status, finished_at=record.failed_at, exit_code=_START_ERROR,
            reason="StartError", message=record.failure,
        )  # fmt: skip
    if ended is None:
        return status
    reason = "Completed" if ended.exit_code == 0 else "Error"
    if ended.out_of_memory:
        reason = "OOMKilled"
    finished = max(ended.at, record.started_at)
    return replace(status, finished_at=finished, exit_code=ended.exit_code, reason=reason)


def _user(record: ContainerRecord) -> ContainerUser | None:
    if not record.user:
        return None
    uid, gid, *groups = record.user
    return ContainerUser(uid, gid, tuple(groups))


def _image_id(stored: StoredImage) -> str:
    return stored.repo_digests[0] if stored.repo_digests else stored.id


def _kill_by_file(pid_file: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
