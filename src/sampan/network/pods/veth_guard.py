"""What a pod's veth lets through: packets of the pod's own addresses, addressed to the node.

Job: a table of bridges' frames as text (it names no pod), and what each pod has in its sets; keep
    both in the kernel.
Invariant: whoever a pod says it is, it is heard as itself or not at all: no address of another pod,
    in whichever family, no claim where an address is (ARP, neighbour discovery: interfaces.py makes
    them needless), no tagged frame, no other protocol.
Invariant: no frame reaches another pod past the node, where policies are.
Owner: PodInterfaces.
"""

from collections.abc import Sequence

from sampan.core.log import get_logger
from sampan.network.nftables.elements import Elements, Field, SetShape
from sampan.network.nftables.nft import NftError
from sampan.network.pods import interfaces
from sampan.network.pods.attachment_elements import AttachmentElements
from sampan.network.pods.attachments import Attachment

FAMILY = "bridge"
VETHS = "veths"
_ADDRESSES = {"ip": "veth-ipv4", "ip6": "veth-ipv6"}
_HEAD = (Field.INTERFACE, Field.HARDWARE)
SHAPES = {
    shape.name: shape
    for shape in (
        SetShape(VETHS, (Field.INTERFACE,)),
        SetShape(_ADDRESSES["ip"], (*_HEAD, Field.IPV4)),
        SetShape(_ADDRESSES["ip6"], (*_HEAD, Field.IPV6)),
    )
}
log = get_logger(__name__)


def skeleton(table: str, hardware: bytes) -> str:
    """Repeating it changes nothing. `hardware`: the bridge's own address. Pure."""
    where, chain = f"{FAMILY} {table}", "veth-guard"
    # Before anything else: the bridge's own filters, and what it learns of where who is.
    hook = "type filter hook prerouting priority -350; policy accept;"
    tagged = ("8021q", "8021ad")
    rules = [
        f"iifname != @{VETHS} accept",
        f"ether daddr != {interfaces.hardware_text(hardware)} drop",
        *(f"ether type {each} drop" for each in tagged),
        *(
            f"ether type {family} iifname . ether saddr . {family} saddr @{name} accept"
            for family, name in _ADDRESSES.items()
        ),
        "drop",
    ]
    kinds = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}
    lines = [
        f"add table {where}",
        f"add set {where} {VETHS} {{ type ifname; }}",
        *(
            f"add set {where} {name} {{ type ifname . ether_addr . {kinds[family]}; }}"
            for family, name in _ADDRESSES.items()
        ),
        f"add chain {where} {chain} {{ {hook} }}",
        f"flush chain {where} {chain}",
        *(f"add rule {where} {chain} {rule}" for rule in rules),
    ]
    return "\n".join(lines) + "\n"


def elements_of(attachment: Attachment) -> Elements:
    """What a pod's interface has in the sets. Pure."""
    if not attachment.guarded:  # an earlier version's: it asks its neighbours where they are
        return {}
    veth = attachment.host_interface
    hardware = interfaces.hardware_text(interfaces.hardware_address(attachment.addresses))
    elements: Elements = {(VETHS, (veth,)): None}
    for address in attachment.bare_addresses():
        name = _ADDRESSES["ip6" if ":" in address else "ip"]
        elements[name, (veth, hardware, address)] = None
    return elements


class VethGuard:
    def __init__(self, table: str, bridge: str) -> None:
        self._table, self._bridge = table, bridge
        self._elements = AttachmentElements(FAMILY, table, SHAPES, elements_of)
        self._stands = False

    def load(self, attachments: Sequence[Attachment]) -> None:
        """The rules, and every pod's elements. Raises OSError."""
        try:
            rules = skeleton(self._table, interfaces.hardware_of(self._bridge))
            self._elements.load(rules, attachments)
            self._stands = True
        except NftError as error:
            self._stands = False
            tell_unguarded(error)

    def take_over(self, attachments: Sequence[Attachment]) -> None:
        """Likewise, where the rules were just written, if they could be. Raises OSError."""
        try:
            self._elements.take_over(attachments)
            self._stands = True
        except FileNotFoundError:
            self._stands = False  # whoever wrote the others has told it

    def close(self) -> None:
        self._elements.close()

    def put(self, attachment: Attachment) -> None:
        """Before the interface is there. Raises OSError."""
        if self._stands:
            self._elements.put(attachment)

    def remove(self, attachment: Attachment) -> None:
        """After the interface is gone. Raises OSError."""
        if self._stands:
            self._elements.remove(attachment)


def tell_unguarded(error: NftError) -> None:
    """A kernel without nftables for bridges."""
    log.warning(
        "anti-spoofing rules are off: pods can send from addresses of other pods of this node",
        error=error,
    )
