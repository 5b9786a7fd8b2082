"""The proxy's table in the kernel: the applier of what the plans say.

Job: keep the chains that elements lead to, apply changes of elements, read back what is there.
Invariant: a chain is there before an element leads to it.
Owner: ServiceProxy, one per family of addresses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sampan.network.nftables import nft
from sampan.network.nftables.desired_elements import Change
from sampan.network.nftables.elements import Elements, Values, Verdict
from sampan.network.nftables.learning_rule import learning_rule
from sampan.network.nftables.netfilter import ElementChange, Netfilter
from sampan.network.services import ruleset
from sampan.network.services.ruleset import ProxyPlace, shape_of

# So many changes per transaction: one message of them all would not fit the socket's buffer.
MOST_CHANGES = 5000


class ServiceTable:
    def __init__(self, family: str, place: ProxyPlace) -> None:
        self.family = family
        self._place = place
        self._chains: set[str] = set()
        self._slots = ruleset.SLOTS_AT_START
        self._netfilter = Netfilter(family, place.table)

    def close(self) -> None:
        self._netfilter.close()

    def load(self) -> None:
        """Rules as they must be, elements as they are. Raises NftError."""
        nft.load(self.family, self._place.table, ruleset.skeleton(self.family, self._place))

    def replace(self) -> None:
        """Rules as they must be, and nothing else. Raises NftError."""
        nft.replace(self.family, self._place.table, ruleset.skeleton(self.family, self._place))

    def refuse_rest(self, service_cidrs: tuple[str, ...]) -> None:
        """What is addressed to these ranges and nobody has is rejected. Raises NftError."""
        if service_cidrs != self._place.service_cidrs:
            place = replace(self._place, service_cidrs=service_cidrs)
            nft.write(self.family, place.table, ruleset.refusals(self.family, place))
            self._place = place

    def present(self) -> Elements:
        """What an earlier proxy left. Its chains are written again when they are used."""
        found: Elements = {}
        for name in ruleset.shapes(self.family):
            found.update(self._elements(name))
        self._slots = 0
        while (more := self._slot(self._slots)) is not None:
            found.update(more)
            self._slots += 1
        return found

    def apply(self, changes: Sequence[Change]) -> None:
        """Raises OSError where the table is not as we left it, NftError where it cannot be so."""
        self._ensure_chains(changes)
        for start in range(0, len(changes), MOST_CHANGES):
            self._netfilter.apply(
                [
                    ElementChange(shape_of(self.family, name), key, value, gone)
                    for (name, key), value, gone in changes[start : start + MOST_CHANGES]
                ]
            )

    def affinities(self) -> Iterator[tuple[Values, Values]]:
        """Which client goes where: (client, address, protocol, port) and the endpoint."""
        for key, data in self._netfilter.elements(ruleset.affinity_shape(self.family)):
            assert isinstance(data, tuple)
            yield key, data

    def forget_affinities(self, keys: Sequence[Values]) -> None:
        shape = ruleset.affinity_shape(self.family)
        for key in keys:
            try:
                self._netfilter.apply([ElementChange(shape, key, gone=True)])
            except FileNotFoundError:
                continue  # its time ran out meanwhile

    def _elements(self, name: str) -> Elements:
        shape = shape_of(self.family, name)
        return {(name, key): data for key, data in self._netfilter.elements(shape)}

    def _slot(self, slot: int) -> Elements | None:
        found: Elements = {}
        try:
            for name in ruleset.slot_names(slot):
                found.update(self._elements(name))
        except FileNotFoundError:
            return None
        return found

    def _ensure_chains(self, changes: Sequence[Change]) -> None:
        wanted = {value.chain for _, value, _ in changes if isinstance(value, Verdict)}
        missing = wanted - self._chains - {""}
        if not missing:
            return
        script = ""
        most = max((_endpoints(chain) for chain in missing), default=0)
        if most > self._slots:
            script = ruleset.slots(self.family, self._place, range(self._slots, most))
        script += ruleset.pick_chains(self.family, self._place, missing)
        nft.write(self.family, self._place.table, script)
        self._write_learning_rules(missing)
        self._slots = max(self._slots, most)
        self._chains |= missing

    def _write_learning_rules(self, chains: Iterable[str]) -> None:
        name = ruleset.affinity_shape(self.family).name
        for chain in chains:
            seconds = ruleset.affinity_seconds_of(chain)
            if seconds is not None:
                self._netfilter.add_rule(chain, learning_rule(self.family, name, seconds))


def _endpoints(chain: str) -> int:
    learns = ruleset.affinity_seconds_of(chain) is not None
    return 0 if learns else int(chain.rpartition("-")[2])
