"""The chains and sets of policies, as they are in the kernel.

Job: policies and what is known of pods → the difference, written in transactions of bounded length.
Invariant: what is new is first there, then led to; what is old goes last.
Invariant: a policy that cannot be written lets nothing through, and the others hold.
Owner: the enforcer; one for each family of addresses.
"""

from collections.abc import Mapping, Sequence

from sampan.core.log import get_logger
from sampan.network.nftables import nft
from sampan.network.nftables.desired_elements import Change, DesiredElements, net_changes
from sampan.network.nftables.elements import Elements
from sampan.network.nftables.netfilter import ElementChange, Netfilter
from sampan.network.nftables.nft import NftError, NftRefused
from sampan.network.policies import ruleset
from sampan.network.policies.compiled import EGRESS, INGRESS, CompiledPolicy, Labels, closed
from sampan.network.policies.elements_of_pod import PodView, elements_of_pod, selecting

MOST_CHANGES = 5000
MOST_LINES = 2000  # of one transaction: while it lasts, nobody else's is made
log = get_logger(__name__)


class KernelPolicies:
    """The chains and sets of policies for one family of addresses, as they are in the kernel."""

    def __init__(self, family: str, table: str) -> None:
        """The rules of `ruleset.skeleton` are there."""
        self._family, self._table = family, table
        self._netfilter = Netfilter(self._family, self._table)
        self._sets: set[str] = set()
        self._chains: set[str] = set()
        self._whole: set[str] = set()  # the ids of policies that are written
        present: Elements = {}
        for name in self._look():
            for key, data in self._netfilter.elements(ruleset.shape_of(self._family, name)):
                present[name, key] = data
        self.desired = DesiredElements(present)
        self._adopting = True
        self._ids: frozenset[str] = frozenset()
        self._closed: dict[str, CompiledPolicy] = {}  # by the id of those that cannot be written

    def close(self) -> None:
        self._netfilter.close()

    def apply(
        self,
        policies: Sequence[CompiledPolicy],
        views: Mapping[str, PodView | None],
        namespaces: Mapping[str, Labels],
    ) -> None:
        policies = self._written(policies)
        changes: list[Change] = []
        combinations: dict[str, tuple[list[CompiledPolicy], str]] = {}
        for key in sorted(views):
            view = views[key]
            elements: Elements = {}
            if view is not None:
                elements = elements_of_pod(view, policies, namespaces, self._family)
                for direction in (INGRESS, EGRESS) if view.local else ():
                    mine = selecting(view, policies, direction)
                    if mine:
                        combinations[ruleset.combination(mine, direction)] = (mine, direction)
            changes += self.desired.put(key, elements)
        if self._adopting:
            changes += self.desired.adopted()
        self._combine(combinations)
        self._change(net_changes(changes))
        ids = frozenset(policy.id for policy in policies)
        if self._adopting or ids != self._ids:
            self._remove(policies)
        self._adopting, self._ids = False, ids

    def _written(self, policies: Sequence[CompiledPolicy]) -> list[CompiledPolicy]:
        """They are in the kernel then, each with its chains and sets; or closed, where it cannot
        be. Before combinations, which lead to their chains. Adopted ones are written again, once,
        as nobody knows whether they were finished."""
        live = {policy.id for policy in policies}
        self._closed = {key: one for key, one in self._closed.items() if key in live}
        known = self._whole | self._closed.keys()
        missing = [policy for policy in policies if policy.id not in known]
        try:
            self._write(missing)
        except NftRefused:
            for policy in missing:
                self._write_or_close(policy)
        return [self._closed.get(policy.id, policy) for policy in policies]

    def _write_or_close(self, policy: CompiledPolicy) -> None:
        try:
            self._write([policy])
        except NftRefused as error:
            self._closed[policy.id] = instead = closed(policy)
            self._write([instead])
            log.warning(
                "a network policy cannot be written, it lets nothing through",
                policy=policy.key, error=error,
            )  # fmt: skip

    def _write(self, policies: Sequence[CompiledPolicy]) -> None:
        scripts = [ruleset.policy_script(self._family, self._table, policy) for policy in policies]
        try:
            self._run([line for script in scripts for line in script.lines])
        except NftError:
            self._look()  # some of it may be there
            raise
        self._whole.update(policy.id for policy in policies)
        for policy, script in zip(policies, scripts, strict=True):
            self._chains |= script.chains
            self._sets |= {shape.name for shape in ruleset.sets_of(self._family, policy)}

    def _look(self) -> list[str]:
        """What is there: an earlier enforcer's is kept until everything of ours is in force."""
        names = [name for name in self._netfilter.sets() if name.startswith(ruleset.PREFIX)]
        self._sets = {name for name in names if name not in ruleset.VERDICTS}
        self._chains = {
            name for name in self._netfilter.chains() if name.startswith(ruleset.PREFIX)
        }
        return names

    def _combine(self, combinations: Mapping[str, tuple[list[CompiledPolicy], str]]) -> None:
        lines: list[str] = []
        chains = set()
        for name, (mine, direction) in combinations.items():
            if self._adopting or name not in self._chains:
                lines += ruleset.combination_script(self._family, self._table, mine, direction)
                chains.add(name)
        self._run(lines)
        self._chains |= chains

    def _run(self, lines: Sequence[str]) -> None:
        for start in range(0, len(lines), MOST_LINES):
            portion = "\n".join(lines[start : start + MOST_LINES])
            nft.write(self._family, self._table, f"{portion}\n")

    def _change(self, changes: Sequence[Change]) -> None:
        for start in range(0, len(changes), MOST_CHANGES):
            self._netfilter.apply(
                [
                    ElementChange(ruleset.shape_of(self._family, name), key, value, gone)
                    for (name, key), value, gone in changes[start : start + MOST_CHANGES]
                ]
            )

    def _remove(self, policies: Sequence[CompiledPolicy]) -> None:
        """What no policy and no pod has any use for. (Every pod was looked at when policies
        changed, so no element is left in these sets.)"""
        live = {policy.id for policy in policies}
        used = self.desired.chains()
        chains = {
            chain
            for chain in self._chains
            if (chain not in used if _is_combination(chain) else _id_in(chain) not in live)
        }
        sets = {name for name in self._sets if _id_in(name) not in live}
        self._run(ruleset.removal_script(self._family, self._table, chains, sets))
        self._chains -= chains
        self._sets -= sets
        self._whole &= live


def _is_combination(chain: str) -> bool:
    return chain.startswith(f"{ruleset.PREFIX}all-")


def _id_in(name: str) -> str:
    return name.removeprefix(ruleset.PREFIX).partition("-")[0]
