"""The sandboxes of a node without a container runtime: what the containers of a pod share.

Job: namespaces, name resolution, shared memory and the network interface of each pod; made, found
    again after a restart, taken away.
Invariant: what failed halfway is taken back; a record is there before what it names.
Owner: NativeRuntime.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from sampan.core.clock import Clock
from sampan.core.log import get_logger
from sampan.core.mounts import mount, unmount_all
from sampan.core.tasks import Tasks, finish
from sampan.kubelet.contracts.runtime import (
    RuntimeFailure,
    SandboxSpec,
    SandboxStatus,
)
from sampan.kubelet.native.failures import translated_failures
from sampan.kubelet.native.first_process import (
    end_first_process,
    process_namespace,
    start_first_process,
)
from sampan.kubelet.native.namespaces import (
    IPC,
    NETWORK,
    USERS,
    UTS,
    is_held,
    make_namespaces,
    release_namespaces,
)
from sampan.kubelet.native.records import Records, SandboxRecord
from sampan.runtime import user_namespace
from sampan.runtime.own_thread import in_own_thread
from sampan.runtime.programs import Programs

_SHARED_MEMORY_BYTES = 64 << 20  # as containerd
PORTS = "net.ipv4.ip_unprivileged_port_start"
UNPRIVILEGED = {
    PORTS: "0",
    "net.ipv4.ping_group_range": "0 2147483647",
}
log = get_logger(__name__)

OnAddresses = Callable[[str, str, tuple[str, ...]], Awaitable[object]]


class SandboxNetwork(Protocol):
    """Who makes a pod's interface. Both raise RuntimeFailure."""

    async def attach(self, sandbox_id: str, namespace: str, spec: SandboxSpec) -> tuple[str, ...]:
        """The addresses that it has then."""

    async def detach(self, sandbox_id: str, namespace: str) -> None:
        """`namespace`: empty where it is gone, as after a reboot."""

    def why_not_ready(self) -> str:
        """Empty: pods can be attached."""


class Sandboxes:
    def __init__(
        self, directory: Path, programs: Programs, network: SandboxNetwork, clock: Clock
    ) -> None:
        self._programs, self._network, self._clock = programs, network, clock
        self._records = Records(directory, SandboxRecord)
        self._all: dict[str, SandboxRecord] = {}
        self._stopped: set[str] = set()  # of these nothing is left but the record, or soon will be
        self._tasks = Tasks("sandboxes")
        self._releasing: dict[str, asyncio.Task[None]] = {}
        self.on_addresses: OnAddresses | None = None

    async def close(self) -> None:
        """What is being released is gone then."""
        await self._tasks.stop()

    async def find_again(self) -> None:
        """What an earlier process made; what it left halfway goes."""
        for record in self._records.all():
            place = self.place(record.id)
            held = all(is_held(place / kind) for kind in record.namespaces)
            held = held and (not record.shares_processes or bool(process_namespace(place)))
            self._all[record.id] = replace(record, ready=record.ready and held)
        for left in self._records.broken():
            await self._detach(left)
            await end_first_process(self._programs, self.place(left), left)
            await asyncio.to_thread(self._forget, left)

    def place(self, sandbox_id: str) -> Path:
        return self._records.place(sandbox_id)

    def get(self, sandbox_id: str) -> SandboxRecord | None:
        return self._all.get(sandbox_id)

    def of_pod(self, uid: str) -> list[SandboxRecord]:
        return [record for record in self._all.values() if record.uid == uid]

    def uids(self) -> list[str]:
        return list({record.uid: None for record in self._all.values()})

    def network_namespace(self, sandbox_id: str) -> str:
        """Empty: the node's own. Raises RuntimeFailure."""
        record = self._all.get(sandbox_id)
        if record is None or not record.ready:
            raise RuntimeFailure(f"sandbox {sandbox_id} is not running")
        return "" if record.host_network else str(self.place(sandbox_id) / NETWORK)

    async def run(self, spec: SandboxSpec) -> str:
        return await finish(self._run(spec))

    async def _run(self, spec: SandboxSpec) -> str:
        _refuse_what_is_missing(spec, self._programs.name)
        record = SandboxRecord(
            secrets.token_hex(32), spec.name, spec.namespace, spec.uid, spec.attempt,
            self._clock.now(), dict(spec.labels), dict(spec.annotations),
            namespaces=_own_namespaces(spec), host_network=spec.security.host_network,
            shares_processes=spec.security.share_process_namespace,
        )  # fmt: skip
        made = False
        try:
            with translated_failures("the pod's sandbox"):
                # The thread is in the pod's namespaces then, and must not be used for others.
                await in_own_thread("pod-namespaces", partial(self._make, record, spec))
                if record.shares_processes:
                    cgroup = f"{spec.cgroup_parent or '/sampan'}/{record.id}"
                    await start_first_process(
                        self._programs, self.place(record.id), record.id, cgroup
                    )
                record = await self._with_network(record, spec)
                self._records.put(record)
            made = True
        finally:
            if not made:
                await self._take_back(record)
        self._all[record.id] = record
        return record.id

    def _make(self, record: SandboxRecord, spec: SandboxSpec) -> None:
        self._records.put(record)
        place = self._records.place(record.id)
        users = spec.security.users
        sysctls = spec.sysctls if users is not None else {**_own_sysctls(spec), **spec.sysctls}
        make_namespaces(place, record.namespaces, spec.hostname, sysctls, users)
        (place / "resolv.conf").write_text(_resolv_conf(spec))
        (place / "hostname").write_text(f"{spec.hostname}\n")
        if not spec.security.host_ipc:
            shared = place / "shm"
            shared.mkdir(exist_ok=True)
            options = f"mode=1777,size={_SHARED_MEMORY_BYTES}"
            mount("shm", str(shared), "tmpfs", 0, options)

    async def _with_network(self, record: SandboxRecord, spec: SandboxSpec) -> SandboxRecord:
        if spec.security.host_network:
            return replace(record, ready=True)
        place = self._records.place(record.id) / NETWORK
        ips = await self._network.attach(record.id, str(place), spec)
        if self.on_addresses is not None:
            await self.on_addresses(spec.namespace, spec.name, ips)
        return replace(record, ready=True, ips=ips)

    async def _take_back(self, record: SandboxRecord) -> None:
        try:
            if not record.host_network:
                await self._detach(record.id)
            await self._end_first(record)
            await asyncio.to_thread(self._forget, record.id)
        except (RuntimeFailure, OSError) as error:
            # As a pod's sandbox that has ended it is seen, and removed later.
            log.warning("a sandbox is only removed in part", pod=record.name, error=error)
            self._all[record.id] = replace(record, ready=False)

    async def _detach(self, sandbox_id: str) -> None:
        place = self.place(sandbox_id) / NETWORK
        await self._network.detach(sandbox_id, str(place) if is_held(place) else "")

    async def _end_first(self, record: SandboxRecord) -> None:
        if record.shares_processes:
            await end_first_process(self._programs, self.place(record.id), record.id)

    async def stop(self, sandbox_id: str) -> None:
        """Its containers have ended."""
        record = self._all.get(sandbox_id)
        if record is None or sandbox_id in self._stopped:
            return
        with translated_failures("the pod's sandbox"):
            if not record.host_network:
                await self._detach(sandbox_id)
            await self._end_first(record)
            if sandbox_id in self._all:
                self._all[sandbox_id] = stopped = replace(record, ready=False)
                self._records.put(stopped)
                self._stopped.add(sandbox_id)
                # Nobody is in its namespaces any more: nobody has to wait until they are gone.
                released = self._tasks.start("release", finish(self._release_later(sandbox_id)))
                self._releasing[sandbox_id] = released

    async def _release_later(self, sandbox_id: str) -> None:
        try:
            await asyncio.to_thread(self._release, sandbox_id)
        except OSError as error:
            # Its removal tries again.
            log.warning("a sandbox's namespaces cannot be released", id=sandbox_id, error=error)
        finally:
            self._releasing.pop(sandbox_id, None)

    def _release(self, sandbox_id: str) -> None:
        place = self._records.place(sandbox_id)
        release_namespaces(place)
        unmount_all(str(place / "shm"))

    def _forget(self, sandbox_id: str) -> None:
        self._release(sandbox_id)
        self._records.remove(sandbox_id)

    async def remove(self, sandbox_id: str) -> None:
        """It is stopped, and its containers are gone."""
        released = self._releasing.get(sandbox_id)
        if released is not None:
            await asyncio.wait([released])
        with translated_failures("the pod's sandbox"):
            await asyncio.to_thread(self._forget, sandbox_id)
        self._all.pop(sandbox_id, None)
        self._stopped.discard(sandbox_id)


def _refuse_what_is_missing(spec: SandboxSpec, handler: str) -> None:
    """`handler`: the one that there is, which RuntimeClasses may name."""
    if spec.runtime_handler not in ("", handler):
        raise RuntimeFailure(
            f"the runtime handler {spec.runtime_handler!r} is not there with --runtime native"
        )


def _own_namespaces(spec: SandboxSpec) -> tuple[str, ...]:
    kinds = []
    if not spec.security.host_network:
        kinds += [NETWORK, UTS]
    if not spec.security.host_ipc:
        kinds.append(IPC)
    if spec.security.users is not None:
        kinds.append(USERS)
    return tuple(kinds)


def _own_sysctls(spec: SandboxSpec) -> dict[str, str]:
    """As containerd, as sampan sets it up: any user of a pod may have port 80, and ping."""
    if spec.security.host_network:
        return {}
    if user_namespace.rights().is_inside:
        return {PORTS: UNPRIVILEGED[PORTS]}  # groups that nobody has cannot be named there
    return dict(UNPRIVILEGED)


def _resolv_conf(spec: SandboxSpec) -> str:
    lines = [f"nameserver {server}" for server in spec.dns_servers]
    if spec.dns_searches:
        lines.insert(0, f"search {' '.join(spec.dns_searches)}")
    if spec.dns_options:
        lines.append(f"options {' '.join(spec.dns_options)}")
    return "".join(f"{line}\n" for line in lines)


def sandbox_status(record: SandboxRecord) -> SandboxStatus:
    return SandboxStatus(
        record.id, record.name, record.namespace, record.uid, record.attempt, record.ready,
        record.created_at, record.ips if record.ready else (), record.host_network,
        record.labels, record.annotations,
    )  # fmt: skip
