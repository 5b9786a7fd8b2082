"""What the container runtime asks of a CNI plugin, and what it gets.

Job: the bytes of one call → a PluginCall; results and errors as the specification has them. Pure.
Invariant: a call that is let through names its container and interface as file names may be named.
"""

import json
from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern
from sampan.network.pods.bandwidth import UNLIMITED, Bandwidth, Limit

VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
LATEST = VERSIONS[-1]
LOOPBACK, OWN = "loopback", "sampan"  # the types of plugin that we are
VALID_ATTACHMENTS = "cni.dev/valid-attachments"

INCOMPATIBLE_VERSION, BAD_ENVIRONMENT = 1, 4
UNDECODABLE, BAD_CONFIGURATION, NOT_AVAILABLE = 6, 7, 50
FAILED = 100  # the first that is the plugin's own

_CONTAINER = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.\-]*\Z")
_INTERFACE = lazy_pattern(r"[^\s/:]{1,15}\Z")
_NEED_CONTAINER = ("ADD", "DEL", "CHECK")
_COMMANDS = (*_NEED_CONTAINER, "GC", "STATUS", "VERSION")


class PluginError(Exception):
    """The call fails; the runtime shows `message` in the pod's event."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class PortMapping:
    host_port: int
    port: int  # of the pod
    protocol: str  # TCP
    host_ip: str = ""  # empty: every address of the machine


@dataclass(frozen=True, slots=True)
class PluginCall:
    command: str
    version: str
    type: str
    container: str = ""
    namespace: str = ""  # the path of the pod's network namespace
    interface: str = ""
    ports: tuple[PortMapping, ...] = ()
    valid: tuple[tuple[str, str], ...] = ()  # for GC: container and interface
    previous: tuple[str, ...] = ()  # for CHECK: the addresses that were given
    pod_uid: str = ""  # where the runtime says it
    bandwidth: Bandwidth = UNLIMITED


def parse_call(data: bytes) -> PluginCall:
    """As plugin_program.py sends it. Raises PluginError."""
    head, ended, body = data.partition(b"\0\0") if data[:1] != b"\0" else (b"", b"\0", data[1:])
    if not ended:
        raise PluginError(UNDECODABLE, "the call ends before its environment does")
    pairs = (entry.partition("=") for entry in head.decode(errors="replace").split("\0"))
    environment = {name: value for name, _, value in pairs}
    try:
        config = json.loads(body or b"{}")
    except ValueError as error:
        raise PluginError(UNDECODABLE, f"the configuration is no JSON: {error}") from error
    if not isinstance(config, dict):
        raise PluginError(UNDECODABLE, "the configuration is no JSON object")
    return _checked(environment, config)


def _checked(environment: dict[str, str], config: Obj) -> PluginCall:
    command = environment.get("CNI_COMMAND", "")
    if command not in _COMMANDS:
        raise PluginError(BAD_ENVIRONMENT, f"unknown CNI_COMMAND: {command}")
    version = config.get("cniVersion") or "0.1.0"
    if command == "VERSION":
        return PluginCall(command, str(version), "")
    if version not in VERSIONS:
        raise PluginError(INCOMPATIBLE_VERSION, f"incompatible CNI versions: {version} is asked "
                          f"for, there are {', '.join(VERSIONS)}")  # fmt: skip
    container, interface = environment.get("CNI_CONTAINERID", ""), environment.get("CNI_IFNAME", "")
    if command in _NEED_CONTAINER:
        if not _CONTAINER.match(container):
            raise PluginError(BAD_ENVIRONMENT, f"invalid CNI_CONTAINERID: {container!r}")
        if not _INTERFACE.match(interface) or interface in (".", ".."):
            raise PluginError(BAD_ENVIRONMENT, f"invalid CNI_IFNAME: {interface!r}")
    namespace = environment.get("CNI_NETNS", "")
    if command in ("ADD", "CHECK") and not namespace:
        raise PluginError(BAD_ENVIRONMENT, "required env variables [CNI_NETNS] missing")
    try:
        return PluginCall(
            command, version, str(config.get("type") or OWN), container, namespace, interface,
            tuple(_ports(config)), tuple(_valid(config)), tuple(_previous(config)),
            _pod_uid(environment.get("CNI_ARGS", "")), _bandwidth(config),
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PluginError(BAD_CONFIGURATION, f"the configuration is wrong: {error!r}") from error


def _pod_uid(arguments: str) -> str:
    """As containerd and CRI-O tell it: K8S_POD_NAMESPACE=…;K8S_POD_UID=…"""
    pairs = (item.partition("=") for item in arguments.split(";"))
    return next((value for key, _, value in pairs if key == "K8S_POD_UID"), "")


def _ports(config: Obj) -> list[PortMapping]:
    """containerd writes HostPort, others hostPort: Go reads names in any case, and so must we."""
    given = (config.get("runtimeConfig") or {}).get("portMappings") or ()
    entries = ({name.lower(): value for name, value in entry.items()} for entry in given)
    return [
        PortMapping(
            int(entry["hostport"]),
            int(entry["containerport"]),
            str(entry.get("protocol") or "tcp").upper(),
            any_or(str(entry.get("hostip") or "")),
        )
        for entry in entries
        if entry.get("hostport")
    ]


def _bandwidth(config: Obj) -> Bandwidth:
    given = (config.get("runtimeConfig") or {}).get("bandwidth") or {}
    entry = {name.lower(): int(value) for name, value in given.items()}
    ingress = Limit(entry.get("ingressrate", 0), entry.get("ingressburst", 0))
    egress = Limit(entry.get("egressrate", 0), entry.get("egressburst", 0))
    if min(ingress.rate, egress.rate, ingress.burst, egress.burst) < 0:
        raise ValueError("bandwidth is negative")
    return Bandwidth(ingress, egress)


def any_or(address: str) -> str:
    """Empty: every address of the node."""
    return "" if address in ("0.0.0.0", "::") else address


def _valid(config: Obj) -> list[tuple[str, str]]:
    given = config.get(VALID_ATTACHMENTS) or ()
    return [(str(entry["containerID"]), str(entry["ifname"])) for entry in given]


def _previous(config: Obj) -> list[str]:
    given = (config.get("prevResult") or {}).get("ips") or ()
    return [str(entry["address"]) for entry in given]


def versions(asked: str) -> Obj:
    return {"cniVersion": asked if asked in VERSIONS else LATEST,
            "supportedVersions": list(VERSIONS)}  # fmt: skip


def result(
    version: str,
    interfaces: Sequence[Obj],
    addresses: Sequence[str],
    gateways: Sequence[str] = (),
    routes: Sequence[Obj] = (),
) -> Obj:
    """The addresses are those of the last interface."""
    ips: list[Obj] = []
    for number, address in enumerate(addresses):
        entry: Obj = {"interface": len(interfaces) - 1, "address": address}
        if number < len(gateways):
            entry["gateway"] = gateways[number]
        if version.startswith("0."):
            entry["version"] = "6" if ":" in address else "4"
        ips.append(entry)
    return {"cniVersion": version, "interfaces": list(interfaces), "ips": ips,
            "routes": list(routes), "dns": {}}  # fmt: skip


def answer(document: Obj | None) -> bytes:
    return b"\0" + (json.dumps(document).encode() if document is not None else b"")


def refusal(version: str, error: PluginError) -> bytes:
    document = {"cniVersion": version or LATEST, "code": error.code, "msg": error.message}
    return b"\1" + json.dumps(document).encode()
