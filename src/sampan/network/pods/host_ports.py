"""Host ports: connections to the machine that lead into a pod, in the node's own table.

Job: the chains and maps for them as text (they name no pod), and what each pod has in the maps;
    keep both in the kernel.
Invariant: of two pods with the same host port the first has it until it goes.
Owner: PodInterfaces, one per family of addresses.
"""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

from sampan.core.log import get_logger
from sampan.network.listeners import Listener
from sampan.network.nftables import conntrack
from sampan.network.nftables.elements import PROTOCOLS, Elements, Field, SetShape, Values
from sampan.network.pods.attachment_elements import AttachmentElements
from sampan.network.pods.attachments import Attachment
from sampan.network.pods.plugin_protocol import PortMapping
from sampan.network.services.ruleset import listening_sets, own_ports

PORTS, ADDRESS_PORTS, HAIRPIN = "host-ports", "host-address-ports", "host-port-hairpin"
_TRANSPORT = "meta l4proto { tcp, udp, sctp }"
_PORT_KEY = "meta l4proto . th dport"
log = get_logger(__name__)


def skeleton(family: str, table: str, bridge: str) -> str:
    """Repeating it changes nothing. NAT of ours comes before that of Services: the first that
    matches decides."""
    address = "ipv4_addr" if family == "ip" else "ipv6_addr"
    where = f"{family} {table}"
    by_port = f"type inet_proto . inet_service : {address} . inet_service"
    by_address = f"type {address} . inet_proto . inet_service : {address} . inet_service"
    lines = [
        f"add table {where}",
        f"add map {where} {PORTS} {{ {by_port}; }}",
        f"add map {where} {ADDRESS_PORTS} {{ {by_address}; }}",
        f"add set {where} {HAIRPIN} {{ type {address} . {address}; }}",
        *(f"add set {where} {name} {{ {kind}; }}" for name, kind in listening_sets(family).items()),
    ]
    for name, hook, rules in _chains(family, bridge):
        kind = f" {{ type {hook}; policy accept; }}" if hook else ""
        lines += [f"add chain {where} {name}{kind}", f"flush chain {where} {name}"]
        lines += [f"add rule {where} {name} {rule}" for rule in rules]
    return "\n".join(lines) + "\n"


def _chains(family: str, bridge: str) -> list[tuple[str, str, list[str]]]:
    local = "fib daddr type local" + (" ip6 daddr != ::1" if family == "ip6" else "")
    to_pod = [
        *own_ports(family),
        f"{_TRANSPORT} dnat {family} to {family} daddr . {_PORT_KEY} map @{ADDRESS_PORTS}",
        f"{local} {_TRANSPORT} dnat {family} to {_PORT_KEY} map @{PORTS}",
    ]
    back = [f"ct status dnat {family} saddr . {family} daddr @{HAIRPIN} masquerade"]
    guard = []
    if family == "ip":
        # The machine's own programs may use its loopback addresses, and the pod must find back; a
        # pod that writes packets to them itself must not get through.
        back.append(f'ct status dnat ip saddr 127.0.0.0/8 oifname "{bridge}" masquerade')
        known = "ct state != { established, related } ct status != dnat"
        guard = [f'iifname "{bridge}" ip daddr 127.0.0.0/8 {known} drop']
    return [
        ("host-port", "", to_pod),
        ("host-port-prerouting", "nat hook prerouting priority dstnat - 1", ["jump host-port"]),
        ("host-port-output", "nat hook output priority -101", ["jump host-port"]),
        ("host-port-postrouting", "nat hook postrouting priority srcnat - 1", back),
        ("host-port-guard", "filter hook input priority filter - 11", guard),
    ]


def shape_of(family: str, name: str) -> SetShape:
    address = Field.IPV4 if family == "ip" else Field.IPV6
    if name == HAIRPIN:
        return SetShape(name, (address, address))
    own = (Field.PROTOCOL, Field.PORT)
    key = own if name == PORTS else (address, *own)
    return SetShape(name, key, (address, Field.PORT))


def elements_of(attachment: Attachment, family: str) -> Elements:
    """What a pod with host ports has in the maps. Pure."""
    elements: Elements = {}
    mine = [each for each in attachment.bare_addresses() if _is_of(family, each)]
    for port in attachment.ports if mine else ():
        if port.protocol not in PROTOCOLS or (port.host_ip and not _is_of(family, port.host_ip)):
            continue
        key: Values = (port.protocol, port.host_port)
        where: tuple[str, Values] = (PORTS, key)
        if port.host_ip:
            where = (ADDRESS_PORTS, (port.host_ip, *key))
        elements[where] = (mine[0], port.port)
        elements[HAIRPIN, (mine[0], mine[0])] = None
    return elements


def _is_of(family: str, address: str) -> bool:
    return (":" in address) == (family == "ip6")


def taken_port(ports: Iterable[PortMapping], known: Iterable[Listener]) -> str:
    """`80/TCP`: one that a program of the node listens at; empty: none. Pure."""
    listening = {(each.protocol, each.port): each for each in known if not each.address}
    at_one = {(each.address, each.protocol, each.port) for each in known if each.address}
    addresses = {each.address for each in known if each.address}
    for port in ports:
        wanted = (port.protocol, port.host_port)
        places = {port.host_ip} if port.host_ip else addresses
        if wanted in listening or any((place, *wanted) in at_one for place in places):
            return f"{port.host_port}/{port.protocol}"
    return ""


class HostPorts:
    def __init__(self, family: str, table: str, bridge: str) -> None:
        self._family, self._table, self._bridge = family, table, bridge
        shapes = {name: shape_of(family, name) for name in (PORTS, ADDRESS_PORTS, HAIRPIN)}
        own = functools.partial(elements_of, family=family)
        self._elements = AttachmentElements(family, table, shapes, own)

    def load(self, attachments: Sequence[Attachment]) -> None:
        """The rules, and every pod's elements; what nobody has goes. Raises OSError, NftError."""
        rules = skeleton(self._family, self._table, self._bridge)
        self._elements.load(rules, attachments)
        self._route_loopback(attachments)

    def take_over(self, attachments: Sequence[Attachment]) -> None:
        """Likewise, where the rules were just written. Raises OSError."""
        self._elements.take_over(attachments)
        self._route_loopback(attachments)

    def close(self) -> None:
        self._elements.close()

    def put(self, attachment: Attachment) -> None:
        """Raises OSError."""
        self._elements.put(attachment)
        self._route_loopback([attachment])
        self._forget(elements_of(attachment, self._family), kept=True)

    def remove(self, attachment: Attachment) -> None:
        self._elements.remove(attachment)
        self._forget(elements_of(attachment, self._family), kept=False)

    def _forget(self, elements: Elements, *, kept: bool) -> None:
        """Clients of UDP go on sending to where they were once sent."""
        for (name, key), data in elements.items():
            if name != HAIRPIN and "UDP" in key:
                holders = {data} if kept and isinstance(data, tuple) else set()
                conntrack.forget(self._family, key, holders)

    def _route_loopback(self, attachments: Iterable[Attachment]) -> None:
        """So that 127.0.0.1 leads to host ports on the machine itself, as the reference plugin."""
        if self._family != "ip" or not any(elements_of(each, "ip") for each in attachments):
            return
        switch = Path(f"/proc/sys/net/ipv4/conf/{self._bridge}/route_localnet")
        try:
            if switch.read_text().strip() != "1":
                switch.write_text("1")
        except OSError as error:
            log.warning("host ports cannot be reached at 127.0.0.1", error=error)
