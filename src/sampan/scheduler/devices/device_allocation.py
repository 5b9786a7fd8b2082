"""Claims to devices over all nodes: where they can be allocated, and what is then written.

Job: a pod's claims → for each node an allocation or the reason why there is none; remembered until
    devices, claims or nodes change.
Owner: Columns.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sampan.api.objects import Obj
from sampan.api.rules.node_selectors import Requirement
from sampan.core.fast_dataclass import dataclass
from sampan.scheduler.devices.allocate import CannotAllocate, Matches, Picked, Search
from sampan.scheduler.devices.device_pools import Pools, reached_from
from sampan.scheduler.devices.devices import DeviceClaim, Devices
from sampan.scheduler.model.arrays import BoolArray, NodeLabels
from sampan.scheduler.model.device_needs import DeviceNeeds

if TYPE_CHECKING:
    from sampan.api.cel.language.cost import Budget
    from sampan.scheduler.devices.device_selectors import Selectors

STEPS_AT_ONCE = 50_000  # of expressions, for one pod: some 10 ms
NOT_ALL = "cannot allocate all claims"
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
NOT_HERE = "resourceclaim not available on the node"


@dataclass(frozen=True, slots=True)
class Found:
    available: BoolArray  # where the claims that have devices can be used
    allocated: BoolArray  # where the others can be allocated
    by_node: tuple[tuple[tuple[int, ...], list[list[Picked]]], ...]  # nodes alike → devices
    problems: tuple[tuple[tuple[int, ...], str], ...]

    def at(self, index: int) -> list[list[Picked]]:
        for indices, picked in self.by_node:
            if index in indices:
                return picked
        return []


class DeviceAllocation:
    def __init__(self) -> None:
        self.devices = Devices()
        self._pools: Pools | None = None
        self._selectors: Selectors | None = None
        self._budget: Budget | None = None  # of expressions, where somebody is in a hurry
        self._known: tuple[int, NodeLabels, DeviceNeeds, Found] | None = None

    def put_rule(self, key: str, written: Obj | None) -> None:
        self.devices.put_rule(key, written)
        self._pools = None

    def put_slice(self, key: str, written: Obj | None) -> None:
        self.devices.put_slice(key, written)
        self._pools = self._selectors = None

    def beforehand(
        self, needs: DeviceNeeds, namespaces: Mapping[str, Mapping[str, str]]
    ) -> str | None:
        """What is wrong with the claims, whatever the node; `namespaces`: their labels."""
        if (why := self.not_there(needs)) is not None:
            return why
        for key, _ in needs.claims:
            claim = self.devices.claims[key]
            if key in self.devices.promised:
                return f"resource claim {key} is in the process of being allocated"
            labels = namespaces.get(key.partition("/")[0], {})
            if claim.allocation is None and (why := self._wrong(claim, labels)):
                return why
        return None

    def not_there(self, needs: DeviceNeeds) -> str | None:
        """Why the pod is not even tried (upstream: PreEnqueue): a claim that it has to wait for."""
        if needs.problem:
            return needs.problem
        for key, owner in needs.claims:
            claim, name = self.devices.claims.get(key), key.partition("/")[2]
            if claim is None:
                return f'resourceclaim "{name}" not found'
            if owner and claim.owner != owner:
                return f"ResourceClaim {key} was not created for pod {needs.pod} (pod is not owner)"
            if claim.deleted:
                return f'resourceclaim "{name}" is being deleted'
        return None

    def search_at_once(self, needs: DeviceNeeds, nodes: NodeLabels) -> bool:
        """Whether it was short; else `search` does it, beside the loop."""
        from sampan.api.cel.language.cost import Budget
        from sampan.scheduler.devices.device_selectors import TakesLong

        self._budget = Budget(STEPS_AT_ONCE)
        try:
            self.found(needs, nodes)
        except TakesLong:
            return False
        finally:
            self._budget = None
        return True

    def search(self, needs: DeviceNeeds, nodes: NodeLabels) -> Callable[[], None]:
        """Asks all that `found` will ask, of copies: the answers are remembered."""
        claims, classes = self._without(needs), dict(self.devices.classes)
        in_use, matches = frozenset(self.devices.in_use()), self._matches()
        pools = self._node_pools()
        reached = [pools.reached(local, near) for local, near in pools.by_node(nodes)]

        def ask() -> None:
            with contextlib.suppress(CannotAllocate):  # said when `found` meets it again
                search = Search(claims, classes, in_use, matches)
                for those in reached:
                    search.allocated(those)

        return ask

    def found(self, needs: DeviceNeeds, nodes: NodeLabels) -> Found:
        known = self._known
        if (
            known is not None
            and known[1] is nodes
            and (known[0], known[2]) == (self.devices.changes, needs)
        ):
            return known[3]
        made = self._found(needs, nodes)
        self._known = (self.devices.changes, nodes, needs, made)
        return made

    def allocations(
        self, needs: DeviceNeeds, nodes: NodeLabels, node: str
    ) -> list[tuple[DeviceClaim, Obj]]:
        """What the claims without devices get on that node."""
        picked = self.found(needs, nodes).at(nodes.at[node])
        claims = self._without(needs)
        return [
            (claim, self._written(claim, devices, node))
            for claim, devices in zip(claims, picked, strict=True)
        ]

    def _wrong(self, claim: DeviceClaim, labels: Mapping[str, str]) -> str:
        if claim.unsupported:
            return f"resource claim {claim.key}: {claim.unsupported} is not supported yet"
        for request in (item for those in claim.requests for item in those):
            if request.device_class not in self.devices.classes:
                wanted = request.device_class
                return f"request {request.name}: device class {wanted} does not exist"
            # Who administers devices sees what others do with them: the namespace must allow it.
            if request.admin and labels.get(ADMIN_LABEL) != "true":
                return (
                    f"request {request.name}: admin access to devices requires the "
                    f"`{ADMIN_LABEL}: true` label on the containing namespace"
                )
        return ""

    def _without(self, needs: DeviceNeeds) -> list[DeviceClaim]:
        known = (self.devices.claims.get(key) for key, _ in needs.claims)
        return [item for item in known if item is not None and item.allocation is None]

    def _found(self, needs: DeviceNeeds, nodes: NodeLabels) -> Found:
        available: BoolArray = np.ones(len(nodes), np.bool_)
        for key, _ in needs.claims:
            claim = self.devices.claims.get(key)
            if claim is not None and claim.allocation is not None:
                available &= reached_from(claim.where, nodes)
        claims = self._without(needs)
        if not claims:
            return Found(available, np.ones(len(nodes), np.bool_), (), ())
        return self._search(claims, nodes, available)

    def _search(
        self, claims: Sequence[DeviceClaim], nodes: NodeLabels, available: BoolArray
    ) -> Found:
        allocated: BoolArray = np.zeros(len(nodes), np.bool_)
        by_node, problems = [], []
        everybody = tuple(range(len(nodes)))
        try:
            search = Search(claims, self.devices.classes, self.devices.in_use(), self._matches())
        except CannotAllocate as error:
            return Found(available, allocated, (), ((everybody, str(error)),))
        pools = self._node_pools()
        for (local, near), indices in pools.by_node(nodes).items():
            try:
                picked = search.allocated(pools.reached(local, near))
            except CannotAllocate as error:
                problems.append((tuple(indices), str(error)))
                continue
            if picked is not None:
                allocated[indices] = True
                by_node.append((tuple(indices), picked))
        return Found(available, allocated, tuple(by_node), tuple(problems))

    def _node_pools(self) -> Pools:
        if self._pools is None:
            self._pools = Pools(self.devices.tainted_slices())
        return self._pools

    def _matches(self) -> Matches:
        # The language of selectors is loaded with the first claim.
        from sampan.scheduler.devices.device_selectors import Selectors

        if self._selectors is None:
            self._selectors = Selectors()
        return partial(self._selectors.match, budget=self._budget)

    def _written(self, claim: DeviceClaim, devices: Sequence[Picked], node: str) -> Obj:
        allocation: Obj = {"devices": {"results": [_result(device) for device in devices]}}
        if config := self._config(claim, devices):
            allocation["devices"]["config"] = config
        if (selector := _node_selector(devices, node)) is not None:
            allocation["nodeSelector"] = selector
        return allocation

    def _config(self, claim: DeviceClaim, devices: Sequence[Picked]) -> list[Obj]:
        """Of the classes first, each once; then the claim's own, as far as they concern what was
        chosen."""
        chosen = {device.request.name: device.request for device in devices}.values()
        by_class: dict[str, list[str]] = {}
        for request in chosen:
            by_class.setdefault(request.device_class, []).append(request.name)
        made = [
            {"source": "FromClass", "requests": names, **_opaque(item)}
            for name, names in by_class.items()
            for item in self.devices.classes[name].config
        ]
        taken = {name for item in chosen for name in (item.name, item.name.partition("/")[0])}
        for item in claim.config:
            requests = item.get("requests") or []
            if not requests or taken & set(requests):
                entry: Obj = {"source": "FromClaim", **_opaque(item)}
                made.append({**entry, "requests": requests} if requests else entry)
        return made


def _result(one: Picked) -> Obj:
    driver, pool, device = one.device.id
    made: Obj = {"request": one.request.name, "driver": driver, "pool": pool, "device": device}
    if one.request.admin:
        made["adminAccess"] = True
    if one.request.written_tolerations:
        made["tolerations"] = list(one.request.written_tolerations)
    return made


def _opaque(one: Obj) -> Obj:
    return {"opaque": one["opaque"]} if "opaque" in one else {}


def _node_selector(devices: Sequence[Picked], node: str) -> Obj | None:
    """From where all of them can be reached; None: from everywhere."""
    wheres = dict.fromkeys(device.device.where for device in devices)
    if any(where.node for where in wheres):
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {"nodeSelectorTerms": [{"matchFields": [field]}]}
    selecting = [where.terms for where in wheres if where.terms is not None]
    if not selecting:
        return None
    # As upstream: one selector is taken as it is; of several, the requirements are put together.
    merged: Obj = {"matchExpressions": [], "matchFields": []}
    if len(selecting) == 1:
        return {"nodeSelectorTerms": [_term(item.labels, item.fields) for item in selecting[0]]}
    for terms in selecting:
        for term in terms[:1]:
            written = _term(term.labels, term.fields)
            for key in merged:
                merged[key] += [item for item in written.get(key, ()) if item not in merged[key]]
    return {"nodeSelectorTerms": [{key: value for key, value in merged.items() if value}]}


def _term(labels: Sequence[Requirement], fields: Sequence[Requirement]) -> Obj:
    made = {"matchExpressions": _requirements(labels), "matchFields": _requirements(fields)}
    return {key: value for key, value in made.items() if value}


def _requirements(those: Sequence[Requirement]) -> list[Obj]:
    found = []
    for item in those:
        entry: Obj = {"key": item.key, "operator": item.operator}
        if item.values:
            entry["values"] = list(item.values)
        found.append(entry)
    return found
