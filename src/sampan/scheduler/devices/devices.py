"""Devices that drivers offer, and claims to them, as values; what was promised and is not stored.

Job: fold ResourceSlices, DeviceClasses and ResourceClaims into what the allocation looks at.
Invariant: a device that one claim has, or was promised, is offered to no other (but for
    administrative access).
Owner: the scheduler's loop; rules read it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set

from sampan.api.objects import Obj, controller_of, is_deleted, key_of, name_of, uid_of
from sampan.api.rules.node_selectors import Term, term_of
from sampan.api.rules.tolerations import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from sampan.core.fast_dataclass import dataclass

MOST_ALTERNATIVES = 8  # of one request, as the API allows
DeviceId = tuple[str, str, str]  # driver, pool, name


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
        for one in devices:
            self._held[one] += sign
            if not self._held[one]:
                del self._held[one]


def held_by(allocation: Obj | None) -> list[DeviceId]:
    """Who has administrative access keeps nobody else away."""
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return [
        (one.get("driver") or "", one.get("pool") or "", one.get("device") or "")
        for one in results
        if not one.get("adminAccess")
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
            _device(one, identity, _where(one) if by_device else everywhere)
            for one in spec.get("devices") or ()
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
        tuple(_alternatives(one) for one in devices.get("requests") or ()),
        _constraints(devices),
        tuple(devices.get("config") or ()),
        is_deleted(written),
        (owner or {}).get("uid") or "",
        allocation,
        Where(terms=None if selector is None else _terms(selector)),
        tuple(one.get("uid") or "" for one in status.get("reservedFor") or ()),
        _unsupported(devices),
        written,
    )


def _constraints(devices: Obj) -> tuple[Constraint, ...]:
    return tuple(
        Constraint(frozenset(one.get("requests") or ()), one.get("matchAttribute") or "")
        for one in devices.get("constraints") or ()
    )


def _alternatives(written: Obj) -> tuple[Request, ...]:
    name = written.get("name") or ""
    if more := written.get("firstAvailable"):
        return tuple(
            _request(one, f"{name}/{one.get('name')}", MOST_ALTERNATIVES - at)
            for at, one in enumerate(more)
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
                one.get("key") or "",
                one.get("operator") or "Equal",
                one.get("value") or "",
                one.get("effect") or "",
            )
            for one in tolerations
        ),
        tolerations,
    )


def _unsupported(devices: Obj) -> str:
    """What upstream has behind gates that are off; it must not be passed over."""
    for one in devices.get("constraints") or ():
        if not one.get("matchAttribute"):
            return "a constraint other than matchAttribute"
    for request in devices.get("requests") or ():
        for one in (request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
            if (one.get("capacity") or {}).get("requests"):
                return f"request {request.get('name')}: capacity"
            if one.get("allocationMode") not in (None, "", "All", "ExactCount"):
                return f"request {request.get('name')}: allocationMode {one['allocationMode']}"
    return ""


def _device(written: Obj, pool: tuple[str, str], where: Where) -> Device:
    attributes = {}
    for name, value in (written.get("attributes") or {}).items():
        [kind] = list(value)[:1] or ["string"]
        attributes[_qualified(name, pool[0])] = (kind, value.get(kind))
    return Device(
        (*pool, written.get("name") or ""),
        attributes,
        {
            _qualified(name, pool[0]): str((one or {}).get("value"))
            for name, one in (written.get("capacity") or {}).items()
        },
        tuple(
            Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "")
            for one in written.get("taints") or ()
            if one.get("effect") in (NO_SCHEDULE, NO_EXECUTE)
        ),
        where,
        not written.get("consumesCounters") and not written.get("bindingConditions"),
    )


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _where(written: Obj) -> Where:
    if written.get("nodeName"):
        return Where(written["nodeName"])
    if written.get("allNodes"):
        return Where()
    return Where(terms=_terms(written.get("nodeSelector") or {}))


def _terms(selector: Obj) -> tuple[Term, ...]:
    return tuple(term_of(one) for one in selector.get("nodeSelectorTerms") or ())


def _selectors(written: Obj) -> tuple[str, ...]:
    expressions: Sequence[Obj] = written.get("selectors") or ()
    return tuple((one.get("cel") or {}).get("expression") or "" for one in expressions)
