"""`port-forward`: local ports that lead into a pod.

Job: find the pod and its ports, listen, and carry each connection over a connection of its own.
"""

import re
import select
import socket

from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.cli.workloads import pods_of
from sampan.client.channels import ChannelSocket
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
CHUNK_BYTES = 65536
HIGHEST_PORT = 65535
LOCALHOST = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Pair:
    local: int
    remote: int


def run(session: Session, values: Values) -> None:
    if len(values.arguments) < 2:
        raise UsageError("TYPE/NAME and list of ports are required for port-forward")
    session.check_context()
    pods_of.check_timeout(values)
    word, *texts = values.arguments
    info = pods_of.named(session, "pods", [word])
    pod = pods_of.attachable(session, info, values["pod-running-timeout"])
    if info.resource.kind == "Service":
        texts = [_of_service(info.obj, pod, text) for text in texts]
    else:
        texts = [_of_pod(pod, text) for text in texts]
    phase = (pod.get("status") or {}).get("phase")
    if phase != "Running":
        raise CliError(f"unable to forward port because pod is not running. Current status={phase}")
    _serve(session, values["address"], pod, [_pair(text) for text in texts])


def _split(text: str) -> tuple[str, str]:
    parts = text.split(":")
    return (parts[0], parts[1]) if len(parts) == 2 else (parts[0], parts[0])


def _of_service(service: Obj, pod: Obj, text: str) -> str:
    """`LOCAL:PORT` where the port is one of the service's, as the pod has it."""
    name, ports = service["metadata"]["name"], service["spec"].get("ports") or []
    local, remote = _split(text)
    if not is_number(remote):
        port = next((one for one in ports if one.get("name") == remote), None)
        if port is None:
            raise CliError(f"Service '{name}' does not have a named port '{remote}'")
        local = str(port["port"]) if local == remote else local
        remote = str(port["port"])
    _refuse_udp(remote, [(one["port"], one.get("protocol")) for one in ports])
    port = next((one for one in ports if one["port"] == int(remote)), None)
    if port is None:
        raise CliError(f"Service {name} does not have a service port {int(remote)}")
    target = port["port"]
    if service["spec"].get("clusterIP") != "None":
        target = port.get("targetPort") or port["port"]
        target = target if isinstance(target, int) else _named_port(pod, target)
    return str(target) if local == str(target) else f"{local}:{target}"


def _of_pod(pod: Obj, text: str) -> str:
    local, remote = _split(text)
    number = remote if is_number(remote) else str(_named_port(pod, remote))
    own = [
        (port["containerPort"], port.get("protocol") or "TCP")
        for container in pod["spec"].get("containers") or []
        for port in container.get("ports") or []
    ]
    _refuse_udp(number, own, remote)
    return number if local == remote else f"{local}:{number}"


def is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def _refuse_udp(number: str, ports: list[tuple[int, str | None]], said: str = "") -> None:
    wanted = int(number) if is_number(number) else -1
    protocols = {protocol for port, protocol in ports if port == wanted}
    if protocols == {"UDP"}:
        raise CliError(f"UDP protocol is not supported for {said or number}")


def _named_port(pod: Obj, name: str) -> int:
    for container in pod["spec"].get("containers") or []:
        for port in container.get("ports") or []:
            if port.get("name") == name:
                return int(port["containerPort"])
    raise CliError(f"Pod '{pod['metadata']['name']}' does not have a named port '{name}'")


def _pair(text: str) -> Pair:
    parts = text.split(":")
    if len(parts) > 2:
        raise CliError(f"invalid port format '{text}'")
    local, remote = parts if len(parts) == 2 else (parts[0], parts[0])
    pair = Pair(_port("local", local or "0"), _port("remote", remote))
    if not pair.remote:
        raise CliError("remote port must be > 0")
    return pair


def _port(which: str, text: str) -> int:
    why = ""
    if not is_digits(text):
        why = "invalid syntax"
    elif int(text) > HIGHEST_PORT:
        why = "value out of range"
    if why:
        raise CliError(
            f"error parsing {which} port '{text}': strconv.ParseUint: parsing \"{text}\": {why}"
        )
    return int(text)


def _listen(address: str, port: int) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        listener.listen()
    except OSError:
        listener.close()
        return None
    return listener


def _serve(session: Session, addresses: list[str], pod: Obj, pairs: list[Pair]) -> None:
    listeners: dict[socket.socket, int] = {}
    for pair in pairs:
        local, bound = pair.local, 0
        for name in addresses:
            for address in LOCALHOST if name == "localhost" else (name,):
                listener = _listen(address, local)
                if listener is None:
                    continue
                local = listener.getsockname()[1]
                bound += 1
                listeners[listener] = pair.remote
                shown = f"[{address}]" if ":" in address else address
                session.print(f"Forwarding from {shown}:{local} -> {pair.remote}")
        if not bound:
            raise CliError(
                f"unable to listen on port {pair.local}: Listeners failed to create with the "
                "following errors: address already in use"
            )
    session.io.stdout.flush()
    try:
        _carry(session, pod, listeners)
    finally:
        for listener in listeners:
            listener.close()


def _carry(session: Session, pod: Obj, listeners: dict[socket.socket, int]) -> None:
    """One loop for all connections: no thread, no task."""
    by_local: dict[socket.socket, ChannelSocket] = {}
    by_remote: dict[socket.socket, tuple[socket.socket, ChannelSocket]] = {}
    path = pods_of.pod_path(pod["metadata"]["namespace"], pod["metadata"]["name"]) + "/portforward"
    while True:
        waiting = [item for item, (_, channels) in by_remote.items() if channels.has_unread()]
        ready = waiting or select.select([*listeners, *by_local, *by_remote], [], [])[0]
        for item in ready:
            if item in listeners:
                local, _ = item.accept()
                port = listeners[item]
                session.print(f"Handling connection for {item.getsockname()[1]}")
                session.io.stdout.flush()
                channels = session.api.websocket(path, {"ports": str(port)}, PROTOCOL)
                by_local[local] = channels
                by_remote[channels.link] = (local, channels)
            elif item in by_local:
                _outward(item, by_local, by_remote)
            elif item in by_remote:
                _inward(session, item, by_local, by_remote)


Locals = dict[socket.socket, ChannelSocket]
Remotes = dict[socket.socket, tuple[socket.socket, ChannelSocket]]


def _outward(local: socket.socket, by_local: Locals, by_remote: Remotes) -> None:
    try:
        data = local.recv(CHUNK_BYTES)
    except OSError:
        data = b""
    if data:
        by_local[local].send(DATA, data)
    else:
        _end(local, by_local, by_remote)


def _inward(session: Session, link: socket.socket, by_local: Locals, by_remote: Remotes) -> None:
    local, channels = by_remote[link]
    for channel, data in channels.messages(block=False):
        if channel not in channels.greeted:
            # Each channel begins with the port's number, two bytes, that are no data.
            channels.greeted.add(channel)
            data = data[2:]
            if not data:
                continue
        if channel == ERROR and data:
            session.complain(f"an error occurred forwarding: {data.decode(errors='replace')}")
        elif channel == DATA:
            try:
                local.sendall(data)
            except OSError:
                break
    if not channels.is_open:
        _end(local, by_local, by_remote)


def _end(local: socket.socket, by_local: Locals, by_remote: Remotes) -> None:
    channels = by_local.pop(local, None)
    if channels is not None:
        by_remote.pop(channels.link, None)
        channels.close()
    local.close()


PORT_FORWARD = Command(
    "port-forward",
    "port-forward TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
    "Forward one or more local ports to a pod.",
    run,
    (Flag("address", "slice", ["localhost"], "Addresses to listen on."), pods_of.pod_timeout()),
)
