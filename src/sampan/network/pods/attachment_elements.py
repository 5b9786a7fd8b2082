"""What every pod's attachment has in the sets and maps of one table, in the kernel.

Job: write the rules, then keep the elements that each attachment asks for.
Invariant: what nobody asks for goes when an earlier process's elements are taken over.
Owner: who has the rules: host ports, the guard of veth pairs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sampan.network.nftables import nft
from sampan.network.nftables.desired_elements import Change, DesiredElements, net_changes
from sampan.network.nftables.elements import Elements, SetShape
from sampan.network.nftables.netfilter import ElementChange, Netfilter
from sampan.network.pods.attachments import Attachment


class AttachmentElements:
    def __init__(
        self,
        family: str,
        table: str,
        shapes: Mapping[str, SetShape],
        elements_of: Callable[[Attachment], Elements],
    ) -> None:
        self._family, self._table, self._shapes = family, table, shapes
        self._elements_of = elements_of
        self._netfilter: Netfilter | None = None
        self._desired = DesiredElements()

    def load(self, rules: str, attachments: Iterable[Attachment]) -> None:
        """The rules, and every pod's elements; what nobody has goes. Raises OSError, NftError."""
        nft.write(self._family, self._table, rules)
        self.take_over(attachments)

    def take_over(self, attachments: Iterable[Attachment]) -> None:
        """Likewise, where the rules were just written. Raises OSError."""
        self.close()
        netfilter = self._netfilter = Netfilter(self._family, self._table)
        present: Elements = {}
        for name, shape in self._shapes.items():
            for key, data in netfilter.elements(shape):
                present[name, key] = data
        self._desired = DesiredElements(present)
        changes: list[Change] = []
        for attachment in attachments:
            changes += self._desired.put(attachment.owner, self._elements_of(attachment))
        self._apply([*changes, *self._desired.adopted()])

    def close(self) -> None:
        if self._netfilter is not None:
            self._netfilter.close()
        self._netfilter = None

    def put(self, attachment: Attachment) -> None:
        """Raises OSError."""
        elements = self._elements_of(attachment)
        if elements:
            self._apply(self._desired.put(attachment.owner, elements))

    def remove(self, attachment: Attachment) -> None:
        if self._elements_of(attachment):
            self._apply(self._desired.put(attachment.owner, {}))

    def _apply(self, changes: Sequence[Change]) -> None:
        assert self._netfilter is not None, "load comes first"
        self._netfilter.apply(
            [
                ElementChange(self._shapes[name], key, value, gone)
                for (name, key), value, gone in net_changes(changes)
            ]
        )
