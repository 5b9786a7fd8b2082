"""The node's CNI plugin: it answers for the small program that the container runtime starts.

Job: take calls at a UNIX socket; give addresses, make interfaces and host ports, take them back.
Invariant: an address is given to nobody else before its interface is gone, whenever this process
    is killed; at the start, what has no interface any more (a reboot) is forgotten.
Invariant: calls for one container are answered one after the other.
Owner: one per node; the only one who makes interfaces on its bridge.
"""

import asyncio
import contextlib
import errno
import functools
import ipaddress
import os
import platform
import shutil
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, cast

from sampan.api.objects import Obj
from sampan.core.elf import UnsupportedMachine, architecture
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.tasks import Tasks, finish
from sampan.core.telemetry.trace_context import current_uid
from sampan.core.telemetry.traces import NO_TRACES, Traces
from sampan.network.listeners import listeners
from sampan.network.nftables.nft import NftError
from sampan.network.nftables.queries import WrittenRules
from sampan.network.pods import interfaces
from sampan.network.pods.addresses import AddressesExhausted, gateway_of, next_address
from sampan.network.pods.attachments import Attachment, Attachments
from sampan.network.pods.bandwidth import UNLIMITED, Bandwidth
from sampan.network.pods.host_ports import HostPorts, taken_port
from sampan.network.pods.interfaces import Veth
from sampan.network.pods.plugin_program import SOCKET, plugin_program
from sampan.network.pods.plugin_protocol import (
    BAD_CONFIGURATION,
    FAILED,
    LATEST,
    LOOPBACK,
    NOT_AVAILABLE,
    OWN,
    PluginCall,
    PluginError,
    PortMapping,
    answer,
    parse_call,
    refusal,
    result,
    versions,
)
from sampan.network.pods.veth_guard import VethGuard

MOST_BYTES = 1 << 20  # of one call
MOST_THREADS = 8
LANE = "kubelet"  # of traces: it is a part of the sandbox's start and end
_TRACED = ("ADD", "DEL")
DEFAULT_ROUTES = {4: "0.0.0.0/0", 6: "::/0"}
T = TypeVar("T")
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PodInterfaceSettings:
    directory: Path  # of our own, below the data directory
    bridge: str
    table: str
    subnets: tuple[str, ...]  # one of each family, the first family's first
    mtu: int = 0

    @property
    def families(self) -> tuple[str, ...]:
        return tuple("ip6" if ":" in subnet else "ip" for subnet in self.subnets)


def is_possible() -> bool:
    """Is there a program for this machine, and nft for host ports?"""
    try:
        architecture(platform.machine())
    except UnsupportedMachine:
        return False
    return shutil.which("nft") is not None


def plugin_directory(directory: Path) -> Path:
    """Where the runtime finds the program."""
    return directory / "bin"


def install(directory: Path) -> None:
    """The program, under each name that it answers to."""
    target = plugin_directory(directory)
    target.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    program = plugin_program(architecture(platform.machine()), directory.resolve())
    for name in (OWN, LOOPBACK):
        file = target / name
        if not file.exists() or file.read_bytes() != program:
            fresh = file.with_suffix(".new")
            fresh.write_bytes(program)
            fresh.chmod(0o755)
            fresh.replace(file)


class PodInterfaces:
    def __init__(self, settings: PodInterfaceSettings) -> None:
        self._settings = settings
        self._subnets = [ipaddress.ip_network(subnet) for subnet in settings.subnets]
        self._attachments = Attachments(settings.directory / "attachments")
        self._last: dict[str, str] = {}  # by subnet: the address that was given last
        self._ports = [
            HostPorts(family, settings.table, settings.bridge) for family in settings.families
        ]
        self._guard = VethGuard(settings.table, settings.bridge)
        self._parts: list[VethGuard | HostPorts] = [self._guard, *self._ports]
        self._traces = NO_TRACES
        self._tasks = Tasks("pod interfaces")
        # Of its own: no other work holds them up, and none is done in a pod's namespace by mistake.
        self._threads = ThreadPoolExecutor(MOST_THREADS, "pod-interfaces")
        # One after the other, and never on the loop: the kernel may be busy with another's rules
        # for seconds.
        self._rules = ThreadPoolExecutor(1, "pod-rules")
        self._is_stopping = self._is_closed = False
        self._turns: dict[str, asyncio.Lock] = {}
        self._server: asyncio.AbstractServer | None = None
        self._verbs: dict[str, Callable[[PluginCall], Awaitable[Obj | None]]] = {
            "ADD": self._add,
            "DEL": self._delete,
            "CHECK": self._check,
            "GC": self._collect,
            "STATUS": self._status,
        }

    async def start(self, written: WrittenRules | None = None) -> None:
        """`written`: with our rules. Raises OSError, NftError."""
        for attachment in self._attachments.all():
            if not interfaces.is_there(attachment.host_interface):
                self._attachments.remove(attachment)
        if written is not None and written.are_the_last():
            for part in self._parts:
                part.take_over(self._attachments.all())
        else:
            await self._in_order(self._restore)
        loop = asyncio.get_running_loop()
        listening = _listening_socket(self._settings.directory)
        self._server = await loop.create_unix_server(lambda: _Call(self._begin), sock=listening)

    def trace_to(self, traces: Traces) -> None:
        """From now on, what it does for a pod is a part of the pod's trace."""
        self._traces = traces

    def restore_soon(self) -> None:
        """Somebody deleted the node's table: host ports and the guard of veth pairs come back."""
        self._tasks.start("restore", finish(self._restore_after_loss()))

    async def _restore_after_loss(self) -> None:
        try:
            await self._in_order(self._restore)
        except (OSError, NftError) as error:
            log.warning("rules of pods' interfaces cannot be restored", error=error)

    def _restore(self) -> None:
        """Rules and elements, whatever became of them. Raises OSError, NftError."""
        for part in self._parts:
            part.load(self._attachments.all())

    async def stop(self) -> None:
        """Interfaces stay: pods may run on. Those that are going are gone then; who comes later is
        refused, and found again by what no sandbox has."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
            self._server = None
            (self._settings.directory / SOCKET).unlink(missing_ok=True)
        await self._tasks.stop()
        self._is_closed = True
        for part in self._parts:
            part.close()
        self._threads.shutdown(wait=False)
        self._rules.shutdown(wait=False)

    def _check_open(self) -> None:
        if self._is_closed:
            raise OSError(errno.ESHUTDOWN, "the node's network has stopped")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _in_order(self, work: Callable[[], None]) -> None:
        self._check_open()
        await asyncio.get_running_loop().run_in_executor(self._rules, work)

    def holders(self) -> set[str]:
        """The sandboxes that have addresses."""
        return {attachment.container for attachment in self._attachments.all()}

    async def attach(
        self,
        container: str,
        namespace: str,
        ports: tuple[PortMapping, ...],
        bandwidth: Bandwidth = UNLIMITED,
    ) -> tuple[str, ...]:
        """For who runs containers without a CNI: the addresses of eth0, which is up then, as the
        loopback interface is. Raises PluginError, AddressesExhausted, OSError, NftError."""
        await self._do(
            PluginCall("ADD", LATEST, OWN, container, namespace, "eth0", ports, bandwidth=bandwidth)
        )
        attachment = self._attachments.get((container, "eth0"))
        return tuple(attachment.bare_addresses()) if attachment is not None else ()

    async def detach(self, container: str) -> None:
        """What `attach` made; the interface itself goes a little later. Raises OSError."""
        await self._do(PluginCall("DEL", LATEST, OWN, container, "", "eth0"))

    async def release(self, container: str) -> None:
        """Whatever a sandbox has that nobody knows any more."""
        for attachment in self._attachments.of_container(container):
            await self._detach(attachment)

    def _begin(self, data: bytes, reply: Callable[[bytes], None]) -> None:
        self._tasks.start("call", finish(self._answer(data, reply)))

    async def _answer(self, data: bytes, reply: Callable[[bytes], None]) -> None:
        version = ""
        try:
            call = parse_call(data)
            version = call.version
            result = await self._do(call)
        except PluginError as error:
            reply(refusal(version, error))
        except AddressesExhausted as error:
            failure = PluginError(FAILED, f"failed to allocate for range 0: {error}")
            reply(refusal(version, failure))
        except (OSError, NftError) as error:
            log.warning("a pod's interface could not be made or removed", error=error)
            reply(refusal(version, PluginError(FAILED, f"the pod's network interface: {error}")))
        else:
            reply(answer(result))

    async def _do(self, call: PluginCall) -> Obj | None:
        if call.command == "VERSION":
            return versions(call.version)
        if call.type == LOOPBACK:
            return await self._loopback(call)
        if call.type != OWN:
            raise PluginError(BAD_CONFIGURATION, f"this is no plugin of type {call.type!r}")
        lock = self._turns.setdefault(call.container, asyncio.Lock())
        began = self._traces.now()
        try:
            async with lock:
                return await self._verbs[call.command](call)
        finally:
            uid = call.pod_uid or current_uid()
            if uid and call.command in _TRACED:
                self._traces.span(uid, LANE, f"CNI {call.command}", began)
            if not lock.locked() and self._turns.get(call.container) is lock:
                del self._turns[call.container]

    async def _add(self, call: PluginCall) -> Obj:
        before = self._attachments.get((call.container, call.interface))
        if before is not None:
            await self._detach(before)
        await self._refuse_taken_ports(call)
        attachment = Attachment(
            call.container,
            call.interface,
            self._host_interface(call),
            tuple(self._next_addresses()),
            call.ports,
            guarded=True,
        )
        self._attachments.put(attachment)
        made = False
        try:
            await self._in_order(functools.partial(self._guard.put, attachment))
            veth = self._veth(attachment, call)
            await self._in_thread(functools.partial(interfaces.plug, veth))
            for ports in self._ports if attachment.ports else ():
                await self._in_order(functools.partial(ports.put, attachment))
            made = True
        finally:
            if not made:
                await self._detach(attachment)
        return self._result(call, attachment)

    async def _refuse_taken_ports(self, call: PluginCall) -> None:
        """Who listens on the node goes on hearing what is for him. Raises PluginError, OSError."""
        taken = taken_port(call.ports, await self._in_thread(listeners)) if call.ports else ""
        if taken:
            raise PluginError(FAILED, f"host port {taken} is in use by a program of the node")

    def _next_addresses(self) -> list[str]:
        taken, found = self._attachments.taken(), []
        for network in self._subnets:
            address = next_address(network, taken, self._last.get(str(network), ""))
            self._last[str(network)] = address
            found.append(f"{address}/{network.prefixlen}")
        return found

    def _host_interface(self, call: PluginCall) -> str:
        bridge = self._settings.bridge
        return interfaces.host_interface_name(bridge, call.container, call.interface)

    def _veth(self, attachment: Attachment, call: PluginCall) -> Veth:
        return Veth(
            self._settings.bridge, attachment.host_interface, attachment.interface,
            call.namespace, attachment.addresses, self._settings.mtu, call.bandwidth,
        )  # fmt: skip

    def _result(self, call: PluginCall, attachment: Attachment) -> Obj:
        gateways = [gateway_of(network) for network in self._subnets]
        mac = interfaces.hardware_text(interfaces.hardware_address(attachment.addresses))
        routes = [{"dst": DEFAULT_ROUTES[network.version]} for network in self._subnets]
        ends = [
            {"name": self._settings.bridge},
            {"name": attachment.host_interface},
            {"name": attachment.interface, "mac": mac, "sandbox": call.namespace},
        ]
        return result(call.version, ends, attachment.addresses, gateways, routes)

    async def _delete(self, call: PluginCall) -> None:
        attachment = self._attachments.get((call.container, call.interface))
        if attachment is None:
            # Made by an earlier installation, or never.
            name = self._host_interface(call)
            if interfaces.is_there(name):
                await self._in_thread(functools.partial(interfaces.unplug, name))
            return
        await self._remove_ports(attachment)
        # The kernel takes 20 ms for it, which nobody has to wait for: the pod's processes are gone,
        # and its address is free only afterwards.
        if self._is_stopping:
            await self._detach(attachment)
        else:
            self._tasks.start("detach", finish(self._detach_later(attachment)))

    async def _detach_later(self, attachment: Attachment) -> None:
        try:
            await self._detach(attachment)
        except OSError as error:
            # It keeps its address: the look for what no sandbox has finds it.
            log.warning("a pod's interface cannot be removed", error=error)

    async def _detach(self, attachment: Attachment) -> None:
        await self._remove_ports(attachment)
        unplug = functools.partial(
            interfaces.unplug,
            attachment.host_interface,
            self._settings.bridge,
            attachment.addresses if attachment.guarded else (),
        )
        await self._in_thread(unplug)
        await self._in_order(functools.partial(self._guard.remove, attachment))
        self._attachments.remove(attachment)

    async def _remove_ports(self, attachment: Attachment) -> None:
        for ports in self._ports if attachment.ports else ():
            await self._in_order(functools.partial(ports.remove, attachment))

    async def _loopback(self, call: PluginCall) -> Obj | None:
        if call.command != "ADD":
            return None
        await self._in_thread(functools.partial(interfaces.raise_loopback, call.namespace))
        ends = [{"name": "lo", "mac": "00:00:00:00:00:00", "sandbox": call.namespace}]
        return result(call.version, ends, ["127.0.0.1/8", "::1/128"])

    async def _check(self, call: PluginCall) -> None:
        attachment = self._attachments.get((call.container, call.interface))
        if attachment is None:
            raise PluginError(FAILED, f"{call.container} has no interface {call.interface} of ours")
        missing = set(call.previous) - set(attachment.addresses)
        if missing or not interfaces.is_there(attachment.host_interface):
            raise PluginError(FAILED, f"{call.interface} of {call.container} is not as it was made")
        look = functools.partial(interfaces.addresses_inside, call.namespace, call.interface)
        missing = set(attachment.addresses) - await self._in_thread(look)
        if missing:
            raise PluginError(FAILED, f"{call.interface} lacks {', '.join(sorted(missing))}")

    async def _collect(self, call: PluginCall) -> None:
        """GC: what the runtime does not name any more goes."""
        for attachment in self._attachments.all():
            if attachment.key not in call.valid:
                await self._detach(attachment)

    async def _status(self, _call: PluginCall) -> None:
        if not interfaces.is_there(self._settings.bridge):
            raise PluginError(NOT_AVAILABLE, f"the bridge {self._settings.bridge} is gone")
        taken = self._attachments.taken()
        for network in self._subnets:
            next_address(network, taken)


class _Call(asyncio.Protocol):
    """One connection: all that is sent, then one answer."""

    def __init__(self, begin: Callable[[bytes, Callable[[bytes], None]], None]) -> None:
        self._begin = begin
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are no subclass of it.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > MOST_BYTES and self._transport is not None:
            self._transport.abort()

    def eof_received(self) -> bool:
        self._begin(bytes(self._data), self._reply)
        return True  # only their half is over

    def _reply(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            self._transport.close()


def _listening_socket(directory: Path) -> socket.socket:
    """By way of an open directory: the paths of sockets are short, those of directories are not."""
    (directory / SOCKET).unlink(missing_ok=True)
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(f"/proc/self/fd/{opened}/{SOCKET}")
        (directory / SOCKET).chmod(0o600)
    except OSError:
        listening.close()
        raise
    finally:
        os.close(opened)
    return listening


def remove_all(directory: Path) -> None:
    """Every interface that was made and not taken back, and the files; for a reset."""
    for attachment in Attachments(directory / "attachments").all():
        with contextlib.suppress(OSError):
            interfaces.unplug(attachment.host_interface)
    shutil.rmtree(directory, ignore_errors=True)
