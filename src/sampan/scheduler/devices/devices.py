"""Devices that drivers offer, and claims to them, as values; what was promised and is not stored.

Job: fold ResourceSlices, DeviceClasses and ResourceClaims into what the allocation looks at.
Invariant: a device that one claim has, or was promised, is offered to no other (but for
    administrative access).
Owner: the scheduler's loop; rules read it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from sampan.api.objects import Obj, controller_of, is_deleted, key_of, name_of, uid_of
from sampan.api.rules.device_taints import DeviceId, rule_matches
from sampan.api.rules.node_selectors import Term, term_of
from sampan.api.rules.tolerations import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, taint_of
from sampan.core.fast_dataclass import dataclass, replace

MOST_ALTERNATIVES = 8  # of one request, as the API allows


@dataclass(frozen=True, slots=True)
class Where:
    """From which nodes something can be reached."""

    node: str = ""
    terms: tuple[Term, ...] | None = None  # None, and no node: from all


@dataclass(frozen=True, slots=True)
class Device:
    id: DeviceId
    attributes: Mapping[str, tuple[str, object]]  # by qualified name: kind and value
    capacity: Mapping[str, str]
    taints: tuple[Taint, ...]
    where: Where
    # Asks for what upstream has behind gates that are off: shared counters, binding conditions.
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Slice:
    name: str
    pool: tuple[str, str]  # driver, name
    generation: int
    count: int  # of slices that the pool has in this generation
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class DeviceClass:
    name: str
    selectors: tuple[str, ...]
    config: tuple[Obj, ...]


@dataclass(frozen=True, slots=True)
class Request:
    name: str  # of an alternative: `request/alternative`
    device_class: str
    selectors: tuple[str, ...]
    count: int  # 0: all
    admin: bool
    preference: int  # the more, the better is this alternative; 0: there is no other
    tolerations: tuple[Toleration, ...]
    written_tolerations: tuple[Obj, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    requests: frozenset[str]  # none: all
    attribute: str  # that all must have, with the same value

    def concerns(self, request: str) -> bool:
        parent = request.partition("/")[0]
        return not self.requests or request in self.requests or parent in self.requests


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    key: str
    uid: str
    requests: tuple[tuple[Request, ...], ...]  # each with its alternatives, the best first
    constraints: tuple[Constraint, ...]
    config: tuple[Obj, ...]
    deleted: bool
    owner: str  # uid of the pod that it was made for
    allocation: Obj | None
    where: Where  # of the allocation
    reserved: tuple[str, ...]  # uids
    unsupported: str
    written: Obj  # for changes of it

    @property
    def held(self) -> list[DeviceId]:
        return held_by(self.allocation)


class Devices:
    def __init__(self) -> None:
        self.slices: dict[str, Slice] = {}
        self.rules: dict[str, Obj] = {}  # that taint devices
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[str, DeviceClaim] = {}
        self.promised: dict[str, Obj] = {}  # claim → allocation, decided here
        self.changes = 0  # grows with every one
        self._held: Counter[DeviceId] = Counter()  # by claims and promises

    def put_slice(self, key: str, written: Obj | None) -> None:
        self.changes += 1
        if written is None:
            self.slices.pop(key, None)
        else:
            self.slices[key] = slice_of(written)

    def put_rule(self, key: str, written: Obj | None) -> None:
        self.changes += 1
        if written is None:
            self.rules.pop(key, None)
        else:
            self.rules[key] = written

    def tainted_slices(self) -> list[Slice]:
        """With the taints of drivers, and those of rules."""
        if not self.rules:
            return list(self.slices.values())
        rules = [
            (rule, _taints((rule.get("spec") or {}).get("taint"))) for rule in self.rules.values()
        ]
        return [_tainted(slice_, rules) for slice_ in self.slices.values()]

    def put_class(self, key: str, written: Obj | None) -> None:
        self.changes += 1
        if written is None:
            self.classes.pop(key, None)
        else:
            self.classes[key] = class_of(written)

    def put_claim(self, key: str, written: Obj | None) -> None:
        self.changes += 1
        before = self.claims.pop(key, None)
        if before is not None:
            self._hold(before.held, -1)
        if written is not None:
            claim = self.claims[key] = claim_of(written)
            self._hold(claim.held, 1)
        if written is None or claim.allocation is not None:
            self.take_back(key)  # the API's word replaces ours

    def promise(self, key: str, allocation: Obj) -> None:
        self.changes += 1
        assert key not in self.promised, key
        self.promised[key] = allocation
        self._hold(held_by(allocation), 1)

    def take_back(self, key: str) -> None:
        allocation = self.promised.pop(key, None)
        if allocation is not None:
            self.changes += 1
            self._hold(held_by(allocation), -1)

    def in_use(self) -> Set[DeviceId]:
        """What claims have, and what was promised."""
        return self._held.keys()

    def _hold(self, devices: Iterable[DeviceId], sign: int) -> None:
        for device in devices:
            self._held[device] += sign
            if not self._held[device]:
                del self._held[device]


def held_by(allocation: Obj | None) -> list[DeviceId]:
    """Who has administrative access keeps nobody else away."""
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return [
        (result.get("driver") or "", result.get("pool") or "", result.get("device") or "")
        for result in results
        if not result.get("adminAccess")
    ]


def slice_of(written: Obj) -> Slice:
    spec = written.get("spec") or {}
    pool = spec.get("pool") or {}
    identity = (spec.get("driver") or "", pool.get("name") or "")
    everywhere = _where(spec)
    by_device = bool(spec.get("perDeviceNodeSelection"))
    return Slice(
        name_of(written),
        identity,
        int(pool.get("generation") or 0),
        int(pool.get("resourceSliceCount") or 1),
        tuple(
            _device(device, identity, _where(device) if by_device else everywhere)
            for device in spec.get("devices") or ()
        ),
    )


def class_of(written: Obj) -> DeviceClass:
    spec = written.get("spec") or {}
    return DeviceClass(name_of(written), _selectors(spec), tuple(spec.get("config") or ()))


def claim_of(written: Obj) -> DeviceClaim:
    devices = (written.get("spec") or {}).get("devices") or {}
    status = written.get("status") or {}
    owner = controller_of(written)
    allocation = status.get("allocation")
    selector = (allocation or {}).get("nodeSelector")
    return DeviceClaim(
        key_of(written),
        uid_of(written),
        tuple(_alternatives(request) for request in devices.get("requests") or ()),
        _constraints(devices),
        tuple(devices.get("config") or ()),
        is_deleted(written),
        (owner or {}).get("uid") or "",
        allocation,
        Where(terms=None if selector is None else _terms(selector)),
        tuple(item.get("uid") or "" for item in status.get("reservedFor") or ()),
        _unsupported_fields(devices),
        written,
    )


def _constraints(devices: Obj) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(
            frozenset(constraint.get("requests") or ()), constraint.get("matchAttribute") or ""
        )
        for constraint in devices.get("constraints") or ()
    )


def _alternatives(written: Obj) -> tuple[Request, ...]:
    name = written.get("name") or ""
    if more := written.get("firstAvailable"):
        return tuple(
            _request(item, f"{name}/{item.get('name')}", MOST_ALTERNATIVES - at)
            for at, item in enumerate(more)
        )
    return (_request(written.get("exactly") or {}, name, 0),)


def _request(written: Obj, name: str, preference: int) -> Request:
    everything = written.get("allocationMode") == "All"
    tolerations = tuple(written.get("tolerations") or ())
    return Request(
        name,
        written.get("deviceClassName") or "",
        _selectors(written),
        0 if everything else int(written.get("count") or 1),
        bool(written.get("adminAccess")),
        preference,
        tuple(
            Toleration(
                toleration.get("key") or "",
                toleration.get("operator") or "Equal",
                toleration.get("value") or "",
                toleration.get("effect") or "",
            )
            for toleration in tolerations
        ),
        tolerations,
    )


def _unsupported_fields(devices: Obj) -> str:
    """What upstream has behind gates that are off; it must not be passed over."""
    for constraint in devices.get("constraints") or ():
        if not constraint.get("matchAttribute"):
            return "a constraint other than matchAttribute"
    for request in devices.get("requests") or ():
        for item in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            if (item.get("capacity") or {}).get("requests"):
                return f"request {request.get('name')}: capacity"
            if item.get("allocationMode") not in (None, "", "All", "ExactCount"):
                return f"request {request.get('name')}: allocationMode {item['allocationMode']}"
    return ""


def _device(written: Obj, pool: tuple[str, str], where: Where) -> Device:
    attributes = {}
    for name, value in (written.get("attributes") or {}).items():
        [kind] = list(value)[:1] or ["string"]
        attributes[_qualified_name(name, pool[0])] = (kind, value.get(kind))
    return Device(
        (*pool, written.get("name") or ""),
        attributes,
        {
            _qualified_name(name, pool[0]): str((item or {}).get("value"))
            for name, item in (written.get("capacity") or {}).items()
        },
        _taints(*(written.get("taints") or ())),
        where,
        not written.get("consumesCounters") and not written.get("bindingConditions"),
    )


def _taints(*written: Obj | None) -> tuple[Taint, ...]:
    """Those that keep claims away."""
    found = (taint_of(taint) for taint in written if taint)
    return tuple(taint for taint in found if taint.effect in (NO_SCHEDULE, NO_EXECUTE))


def _tainted(slice_: Slice, rules: Sequence[tuple[Obj, tuple[Taint, ...]]]) -> Slice:
    devices = []
    for device in slice_.devices:
        more = [
            taint for rule, taints in rules if rule_matches(rule, device.id) for taint in taints
        ]
        devices.append(replace(device, taints=(*device.taints, *more)) if more else device)
    return replace(slice_, devices=tuple(devices))


def _qualified_name(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _where(written: Obj) -> Where:
    if written.get("nodeName"):
        return Where(written["nodeName"])
    if written.get("allNodes"):
        return Where()
    return Where(terms=_terms(written.get("nodeSelector") or {}))


def _terms(selector: Obj) -> tuple[Term, ...]:
    return tuple(term_of(term) for term in selector.get("nodeSelectorTerms") or ())


def _selectors(written: Obj) -> tuple[str, ...]:
    expressions: Sequence[Obj] = written.get("selectors") or ()
    return tuple(
        (expression.get("cel") or {}).get("expression") or "" for expression in expressions
    )
