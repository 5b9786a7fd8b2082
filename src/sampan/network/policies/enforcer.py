"""The policy enforcer of a node: NetworkPolicies, pods and namespaces become nftables rules.

Job: hear of changes, ask the plans, hand the difference to the kernel.
Invariant: a pod's address leads to its policies' chain before the chain's sets are asked for it:
    what is new is first there, then led to; what is old goes last.
Invariant: what takes long (rules that are new, thousands of them for a pod) is done beside the
    loop, of what was known when it began; what changes meanwhile is for the next time.
Owner: one per node; the only writer of the chains and sets of policies.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from sampan.api.objects import Obj, key_of, labels_of, name_of, revision_of
from sampan.api.resources import NAMESPACES, PODS, by_kind
from sampan.api.rules.pods import is_terminal
from sampan.client.informer import Informers
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.tasks import finish
from sampan.network.nftables import nft
from sampan.network.nftables.nft import NftError
from sampan.network.nftables.queries import WrittenRules
from sampan.network.policies import ruleset
from sampan.network.policies.compiled import (
    MOST_SETS,
    CompiledPolicy,
    Labels,
    bounded,
    compile_policy,
)
from sampan.network.policies.elements_of_pod import PodView, name_server_view, pod_view
from sampan.network.policies.kernel_policies import KernelPolicies

POLICIES = by_kind("networking.k8s.io/v1", "NetworkPolicy")
NAME_SERVER = "name server"  # a view like a pod's; no pod's key
RETRY_SECONDS = 1.0
ADMIT_SECONDS = 5.0
log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EnforcerSettings:
    table: str
    node_name: str
    families: tuple[str, ...] = ("ip",)
    name_server: tuple[str, ...] = ()  # the addresses at which it answers the node's pods
    written: WrittenRules | None = None  # with those of policies, by who set the network up


class PolicyEnforcer:
    def __init__(
        self, settings: EnforcerSettings, informers: Informers, clock: Clock, metrics: Metrics
    ) -> None:
        assert POLICIES is not None
        self._settings, self._clock = settings, clock
        self._policies = informers.of(POLICIES)
        self._pods = informers.of(PODS)
        self._namespaces = informers.of(NAMESPACES)
        self._compiled: dict[str, CompiledPolicy] = {}
        self._kept: list[CompiledPolicy] | None = None  # of those; None: they have changed
        self._cut: frozenset[str] = frozenset()  # of these not all is kept, as the log has it
        self._unread: dict[str, Obj] = {}  # policies that came since
        self._labels: dict[str, Labels] = {}
        self._given: dict[str, tuple[str, ...]] = {}  # addresses of pods that start here
        self._superseded: set[str] = set()  # whose addresses others have by now
        self._awaited: dict[str, asyncio.Event] = {}  # pods that start before we heard of them
        self._dirty: set[str] = set()
        self._applying: set[str] = set()  # no longer dirty, and not yet applied
        self._all_dirty = True
        self._rules: list[KernelPolicies] = []  # one of each family; none: to be opened
        self._written = settings.written  # for the first time
        self._lost = False
        self._wake = asyncio.Event()
        self._applied = asyncio.Event()
        self.ready = asyncio.Event()
        self.in_force: frozenset[str] = frozenset()  # the ids of the policies that hold
        self._took = metrics.histogram(
            "sampan_network_policy_sync_duration_seconds",
            "Seconds that a change of policies, pods or namespaces took to be in force.",
        )

    async def run(self) -> None:
        """Until cancelled."""
        self._policies.on_change(self._policy_changed)
        self._namespaces.on_change(self._namespace_changed)
        self._pods.on_change(self._pod_changed)
        for informer in (self._policies, self._namespaces, self._pods):
            await informer.synced()
        try:
            while True:
                await self._sync_or_wait()
                await self._wake.wait()
        finally:
            self._close()

    async def admit(self, namespace: str, name: str, addresses: Sequence[str]) -> bool:
        """A pod that starts here has these addresses. True when its policies are in force; False
        where they could not be brought in force in time: then it must not start."""
        key = f"{namespace}/{name}"
        self._given[key] = tuple(addresses)
        for other in self._pods.cache.all():
            # An address is given again when its pod has stopped, which may be before it is gone.
            if key_of(other) != key and _has_address(other, addresses):
                self._superseded.add(key_of(other))
                self._dirty.add(key_of(other))
        self._dirty.add(key)
        try:
            async with asyncio.timeout(ADMIT_SECONDS):
                if self._pods.cache.get(key) is None:
                    await self._arrival(key)
                self._wake.set()
                while key in self._dirty | self._applying or not self.ready.is_set():
                    self._applied.clear()
                    await self._applied.wait()
        except TimeoutError:
            log.warning("NetworkPolicies of a starting pod are not in force yet", pod=key)
            return False
        return True

    def reload(self) -> None:
        """The table was lost and is there again, without policies."""
        self._lost = True
        self._wake.set()

    async def _arrival(self, key: str) -> None:
        event = self._awaited.setdefault(key, asyncio.Event())
        try:
            await event.wait()
        finally:
            self._awaited.pop(key, None)

    def _policy_changed(self, old: Obj | None, new: Obj | None) -> None:
        key = key_of(new or old or {})
        if new is None:
            self._compiled.pop(key, None)
            self._unread.pop(key, None)
            self._kept = None
        elif old is not None and old.get("spec") == new.get("spec"):
            return
        else:
            self._unread[key] = new
        self._all_dirty = True
        self._wake.set()

    def _namespace_changed(self, old: Obj | None, new: Obj | None) -> None:
        name = name_of(new or old or {})
        labels = labels_of(new) if new is not None else None
        if labels is None:
            self._labels.pop(name, None)
        elif self._labels.get(name) != labels:
            self._labels[name] = labels
            self._all_dirty = self._all_dirty or bool(self._compiled or self._unread)
            self._wake.set()

    def _pod_changed(self, old: Obj | None, new: Obj | None) -> None:
        key = key_of(new or old or {})
        if new is None:
            self._superseded.discard(key)
        elif key in self._awaited:
            self._awaited[key].set()
        if new is None or (new.get("status") or {}).get("podIPs"):
            self._given.pop(key, None)
        if new is not None and old is not None and _same_for_policies(old, new):
            return
        self._dirty.add(key)
        self._wake.set()

    async def _sync_or_wait(self) -> None:
        started = self._clock.now()
        if self._lost:
            await finish(asyncio.to_thread(self._close))
            self._lost = False
        try:
            if not self._rules:
                written, self._written = self._written, None
                self._rules = await asyncio.to_thread(_opened_rules, self._settings, written)
                self._all_dirty = True
            await self._sync()
        except (OSError, NftError) as error:
            log.warning("policies cannot be applied, trying again", error=error)
            await finish(asyncio.to_thread(self._close))
            await self._clock.sleep(RETRY_SECONDS)
            self._wake.set()
            return
        self._took.observe(self._clock.now() - started)
        self.ready.set()
        self._applied.set()

    def _close(self) -> None:
        for rules in self._rules:
            rules.close()
        self._rules = []

    async def _sync(self) -> None:
        self._wake.clear()
        await self._read_policies()
        policies = await self._kept_policies()
        if self._all_dirty:
            self._dirty.add(NAME_SERVER)
            self._dirty.update(key_of(pod) for pod in self._pods.cache.all())
            for rules in self._rules:
                self._dirty.update(rules.desired.owners())
        dirty, self._dirty, self._all_dirty = self._dirty, set(), False
        views = {key: self._view(key) for key in dirty}
        work = partial(_apply, list(self._rules), policies, views, dict(self._labels))
        self._applying = dirty
        try:
            # However little it is: the kernel may be busy with another's rules for seconds.
            await finish(asyncio.to_thread(work))
        except (OSError, NftError):
            self._dirty |= dirty
            raise
        finally:
            self._applying = set()
        self.in_force = frozenset(policy.id for policy in self._compiled.values())

    async def _read_policies(self) -> None:
        unread, self._unread = self._unread, {}
        if not unread:
            return
        work = partial(_compiled, unread)
        for key, policy in (await finish(asyncio.to_thread(work))).items():
            now = self._policies.cache.get(key)
            if now is not None and revision_of(now) == revision_of(unread[key]):
                self._compiled[key] = policy  # else it is gone, or unread again
        self._kept = None

    async def _kept_policies(self) -> list[CompiledPolicy]:
        """In the order of their names; as much of them as a node has room for."""
        if self._kept is None:
            wanted = sorted(self._compiled.values(), key=lambda policy: policy.key)
            self._kept = await finish(asyncio.to_thread(bounded, wanted))
            both = zip(wanted, self._kept, strict=True)
            cut = frozenset(policy.key for policy, kept in both if kept is not policy)
            for key in sorted(cut - self._cut):  # once, not at each change of any policy
                log.warning(
                    "rules of a network policy let nothing through, its namespace has too many",
                    policy=key, most_sets=MOST_SETS,
                )  # fmt: skip
            self._cut = cut
        return self._kept

    def _view(self, key: str) -> PodView | None:
        if key == NAME_SERVER:
            return name_server_view(self._settings.name_server)
        pod = self._pods.cache.get(key)
        if pod is None or key in self._superseded:
            return None
        return pod_view(pod, self._settings.node_name, self._given.get(key, ()))


def _compiled(policies: Mapping[str, Obj]) -> dict[str, CompiledPolicy]:
    return {key: compile_policy(policy) for key, policy in policies.items()}


def _apply(
    families: "Sequence[KernelPolicies]",
    policies: Sequence[CompiledPolicy],
    views: Mapping[str, PodView | None],
    namespaces: Mapping[str, Labels],
) -> None:
    """Raises OSError, NftError."""
    for rules in families:
        rules.apply(policies, views, namespaces)


def _opened_rules(
    settings: EnforcerSettings, written: WrittenRules | None
) -> "list[KernelPolicies]":
    opened: list[KernelPolicies] = []
    try:
        for family in settings.families:
            if written is None or not written.are_the_last():
                nft.write(family, settings.table, ruleset.skeleton(family, settings.table))
            opened.append(KernelPolicies(family, settings.table))
    except (OSError, NftError):
        for rules in opened:
            rules.close()
        raise
    return opened


def _has_address(pod: Obj, addresses: Sequence[str]) -> bool:
    known = (pod.get("status") or {}).get("podIPs") or ()
    own_network = not (pod.get("spec") or {}).get("hostNetwork")
    return own_network and any(entry.get("ip") in addresses for entry in known)


def _same_for_policies(old: Obj, new: Obj) -> bool:
    """Most changes of pods are of no interest here."""
    return labels_of(old) == labels_of(new) and _facts(old) == _facts(new)


def _facts(pod: Obj) -> tuple[object, ...]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return spec.get("nodeName"), is_terminal(pod), status.get("podIPs"), status.get("podIP")
