"""The stage controller: objects move on by themselves, as Stages say.

Job: which objects have Stages; wait as long as each stays where it is, then do its steps.
Invariant: of Nodes only those are played that say `kwok.x-k8s.io/node: fake`, of Pods only theirs;
    of one that has an agent, a node of `--nodes`, Pods and Lease stay the agent's.
Invariant: a Stage is played once for each state of an object; that it changed begins the next.
Invariant: Stages without a delay that lead to each other go round once a second.
Owner: one per cluster.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sampan.api.go_template.parser import TemplateError
from sampan.api.objects import (
    Obj,
    annotations_of,
    key_of,
    micro_time_text,
    name_of,
    revision_of,
    spec_of,
    status_of,
    uid_of,
)
from sampan.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    NODES,
    PODS,
    Resource,
    by_kind,
)
from sampan.api.rules import nodes
from sampan.client.events import reference
from sampan.client.indexer import by_node_name
from sampan.controllers.actions import NOTHING, Action, Outcome, Patch, Plan, Record
from sampan.controllers.cluster.custom_kinds import custom_resource, custom_resources
from sampan.controllers.controller import Caches, Controller, View, Wake
from sampan.controllers.stages.pod_addresses import PodAddresses
from sampan.controllers.stages.stage import Stage, chosen, stays_seconds
from sampan.controllers.stages.steps import actions_of
from sampan.controllers.stages.template_functions import Surroundings
from sampan.core.fast_dataclass import dataclass, replace

NAME = "stage-controller"
ANNOTATION, FAKE = "kwok.x-k8s.io/node", "fake"
NODE_ADDRESS = "192.0.2.1"  # of nodes that say none: nobody is there
NODE_INDEX = "node"
LEASE_NAMESPACE, LEASE_SECONDS, RENEW_SECONDS = "kube-node-lease", 40, 10.0
FAILED = "StageFailed"
MOST_HURRIED, ROUND_SECONDS = 20, 1.0


@dataclass(frozen=True, slots=True)
class Item:
    resource: Resource
    key: str


@dataclass(frozen=True, slots=True)
class LeaseOf:
    node: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """An object in a Stage."""

    revision: int
    stage: Stage | None
    due: float = 0.0
    played: bool = False
    hurried: int = 0  # Stages in a row that did not stay


def stage_controller(stages: Sequence[Stage]) -> Controller:
    player = _Player(stages)
    custom = [names for names in player.kinds if by_kind(*names) is None]
    built_in = [by_kind(*names) for names in player.kinds]
    wakes = {resource: player.wake(resource) for resource in built_in if resource is not None}
    if PODS in wakes:
        wakes.setdefault(NODES, player.node_changed)
    # Of kinds that come later, and of those that a step applies.
    wakes.setdefault(CUSTOM_RESOURCE_DEFINITIONS, _nobody)
    player.watched = frozenset(wakes)
    return Controller(
        NAME,
        NAME,
        wakes,
        player.planned,
        indices={PODS: {NODE_INDEX: by_node_name}} if PODS in wakes else {},
        brings={CUSTOM_RESOURCE_DEFINITIONS: partial(_brought, player, custom)},
    )


def _nobody(_caches: Caches, _old: Obj | None, _new: Obj | None) -> Iterable[Item]:
    return ()


def _brought(
    player: "_Player", kinds: Sequence[tuple[str, str]], definition: Obj
) -> Mapping[Resource, Wake]:
    """In the versions that Stages name, where they are served."""
    found = custom_resource(definition)
    if found is None:
        return {}
    served = [each["name"] for each in definition["spec"]["versions"] if each.get("served")]
    versions = [replace(found, version=version) for version in served]
    wanted = [each for each in versions if (each.api_version, each.kind) in kinds]
    return {resource: player.wake(resource) for resource in wanted}


def is_played(node: Obj | None) -> bool:
    return node is not None and annotations_of(node).get(ANNOTATION) == FAKE


def is_all_ours(node: Obj | None) -> bool:
    """Its Pods and its Lease, too: it has no agent."""
    return node is not None and is_played(node) and not nodes.is_simulated(node)


class _Player:
    def __init__(self, stages: Sequence[Stage]) -> None:
        self.kinds: dict[tuple[str, str], list[Stage]] = {}
        for stage in stages:
            self.kinds.setdefault((stage.api_version, stage.kind), []).append(stage)
        self.watched: frozenset[Resource] = frozenset()
        self._waiting: dict[Item, Waiting] = {}
        self._renewed: dict[str, float] = {}
        self._addresses = PodAddresses()
        self._started: float | None = None

    # Whom a change concerns.

    def wake(self, resource: Resource) -> Wake:
        if resource == NODES:
            return self.node_changed
        if resource == PODS:
            return self.pod_changed

        def changed(_caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Item]:
            obj = new if new is not None else old
            return () if obj is None else (Item(resource, key_of(obj)),)

        return changed

    def pod_changed(self, caches: Caches, old: Obj | None, new: Obj | None) -> Iterable[Item]:
        obj = new if new is not None else old
        assert obj is not None
        if new is None:
            self._addresses.release(uid_of(obj))
        item = Item(PODS, key_of(obj))
        is_ours = is_all_ours(caches(NODES).get(spec_of(obj).get("nodeName") or ""))
        return (item,) if is_ours or item in self._waiting else ()

    def node_changed(
        self, caches: Caches, old: Obj | None, new: Obj | None
    ) -> Iterable[Item | LeaseOf]:
        obj = new if new is not None else old
        assert obj is not None
        name = name_of(obj)
        if not is_played(old) and not is_played(new):
            return ()
        found: list[Item | LeaseOf] = [Item(NODES, name), LeaseOf(name)]
        if PODS in self.watched and is_all_ours(old) != is_all_ours(new):
            found += [Item(PODS, key_of(pod)) for pod in caches(PODS).by(NODE_INDEX, name)]
        return found

    # What is to be done.

    async def planned(self, view: View, key: Item | LeaseOf) -> Plan:
        if self._started is None:
            self._started = view.now
        if isinstance(key, LeaseOf):
            return self._lease(view, key.node)
        obj = _found(view, key)
        if obj is None or not self._is_ours(view, key.resource, obj):
            self._waiting.pop(key, None)
            return NOTHING
        waiting = self._waiting.get(key)
        if waiting is None or waiting.revision != revision_of(obj):
            hurried = waiting.hurried if waiting is not None else 0
            waiting = self._waiting[key] = self._entered(view, key.resource, obj, hurried)
        if waiting.stage is None or waiting.played:
            return NOTHING
        if waiting.due > view.now:
            return Plan(again_seconds=waiting.due - view.now)
        return self._played(view, key, waiting, obj)

    def _is_ours(self, view: View, resource: Resource, obj: Obj) -> bool:
        if resource == NODES:
            return is_played(obj)
        if resource == PODS:
            return is_all_ours(view.cache(NODES).get(spec_of(obj).get("nodeName") or ""))
        return True

    def _entered(self, view: View, resource: Resource, obj: Obj, hurried: int) -> Waiting:
        stages = self.kinds.get((resource.api_version, resource.kind), ())
        stage = chosen(stages, obj, view.rng)
        if stage is None:
            return Waiting(revision_of(obj), None)
        seconds = stays_seconds(stage, obj, view.now, view.rng)
        hurried = 0 if seconds else hurried + 1
        if hurried > MOST_HURRIED:
            seconds = ROUND_SECONDS
        return Waiting(revision_of(obj), stage, view.now + seconds, hurried=hurried)

    def _played(self, view: View, item: Item, waiting: Waiting, obj: Obj) -> Plan:
        assert waiting.stage is not None
        done = partial(self._done, item, waiting)
        try:
            steps = actions_of(
                waiting.stage, item.resource, obj, self._around(view, item.resource, obj),
                partial(_resource_of, view),
            )  # fmt: skip
        except (TemplateError, ValueError) as error:
            said = f"Stage {waiting.stage.name}: {error}"
            steps = [Record(reference(obj), "Warning", FAILED, said)]
        return _in_order(steps, done)

    def _done(self, item: Item, waiting: Waiting) -> None:
        if self._waiting.get(item) is waiting:
            self._waiting[item] = replace(waiting, played=True)

    def _lease(self, view: View, node: str) -> Plan:
        found = view.cache(NODES).get(node)
        if not is_all_ours(found):
            self._renewed.pop(node, None)
            return NOTHING
        assert found is not None
        left = self._renewed.get(node, 0.0) + RENEW_SECONDS - view.now
        if left > 0:
            return Plan(again_seconds=left)
        self._renewed[node] = view.now
        lease = _lease_of(found, view.now)
        return Plan(
            [Patch(LEASES, LEASE_NAMESPACE, node, lease, "apply")], again_seconds=RENEW_SECONDS
        )

    # What templates ask.

    def _around(self, view: View, resource: Resource, obj: Obj) -> Surroundings:
        def node_ips(name: str) -> Sequence[str]:
            node = view.cache(NODES).get(name) if NODES in self.watched else None
            addresses = status_of(node or {}).get("addresses") or ()
            own = [each["address"] for each in addresses if each.get("type") == "InternalIP"]
            return own or (NODE_ADDRESS,)

        def pod_ips(name: str, uid: str) -> Sequence[str]:
            if PODS not in self.watched:
                return ()
            spec = spec_of(view.cache(NODES).get(name) or {})
            ranges = spec.get("podCIDRs") or [each for each in (spec.get("podCIDR"),) if each]
            return self._addresses.of(uid, ranges, view.cache(PODS).all())

        assert self._started is not None
        return Surroundings(
            micro_time_text(view.now), micro_time_text(self._started),
            name_of(obj) if resource == NODES else "", node_ips, pod_ips,
        )  # fmt: skip


def _found(view: View, item: Item) -> Obj | None:
    try:
        return view.cache(item.resource).get(item.key)
    except KeyError:
        return None  # its definition is gone


def _in_order(actions: Sequence[Action], done: Callable[[], None]) -> Plan:
    """One after the other, until one fails."""
    if not actions:
        done()
        return NOTHING

    def then(outcomes: Sequence[Outcome]) -> Plan:
        if any(outcome.error is not None for outcome in outcomes):
            return NOTHING
        return _in_order(actions[1:], done)

    return Plan(actions[:1], then)


def _resource_of(view: View, api_version: str, kind: str) -> Resource | None:
    found = by_kind(api_version, kind)
    if found is not None:
        return found
    served = custom_resources(view.cache)
    return next((each for each in served if (each.api_version, each.kind) == (api_version, kind)),
                None)  # fmt: skip


def _lease_of(node: Obj, now: float) -> Obj:
    name = name_of(node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_time_text(now),
        },
    }
