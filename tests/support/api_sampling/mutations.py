"""Small changes to a good object, by what the published definitions say of it.

Job: from a seeded Random, an object and its type: a field more, a field less, another value, null,
    something empty, a value of another type or at the edge of its own; and what Go's encoders write
    that others do not (nil slices, zero times, numbers as texts).
Invariant: the same seed makes the same change.
"""

import random
from collections.abc import Iterator
from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema
from sampan.core.fast_dataclass import dataclass

NAMES = (
    "a",
    "web",
    "x-1",
    "a.b",
    "A",
    "_x",
    "",
    "a/b",
    "example.org/a",
    "a" * 64,
    "b" * 254,
    "ü",
    "a b",
)
TEXTS = (
    *NAMES,
    "0",
    "-1",
    "80",
    "http",
    "None",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "/a/b",
    "../x",
    "Always",
    "true",
    "*",
    "a=b",
    "80%",
    "101%",
    "$(A)",
    "\n",
    "{}",
    "2026-01-01T00:00:00Z",
)
QUANTITIES = (
    "1",
    "0",
    "-1",
    "100m",
    "1Gi",
    "1.5",
    "1e3",
    "0.1m",
    "x",
    "",
    "1 Gi",
    "9223372036854775808",
    "1n",
    1,
    1.5,
    "+1",
    "1ki",
    ".5",
    "5.",
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    5,
    80,
    255,
    256,
    1000,
    65535,
    65536,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53,
    2**63 - 1,
    1.5,
    1.0,
    1e3,
)
TIMES = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.123456Z",
         "2026-01-01T01:00:00+01:00", "0001-01-01T00:00:00Z", "2026-01-01", "", "x", 5)  # fmt: skip
MICRO_TIMES = ("2026-01-01T00:00:00.000000Z", *TIMES)
BYTES = ("", "YQ==", "YQ", "YQ=", "!", "YQ==\n", [97], 5)
PORTS = (80, 0, -1, 65536, "http", "80%", "", "a" * 16, "1-2", 1.5)
SHARE = 0.3  # of the fields of an object that is made up
MOST_DEEP = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is: its holder, its key there, and its type as far as that is known."""

    holder: Any
    key: Any
    type: Type | None

    @property
    def value(self) -> Any:
        return self.holder[self.key]


class Mutations:
    def __init__(self, schema: Schema, rng: random.Random) -> None:
        self._schema, self._rng = schema, rng

    def mutate(self, obj: Obj, type_: Type | None) -> None:
        """One change, somewhere below metadata or beside it; never of what it is."""
        places = [place for place in self._places(obj, type_) if place.key not in _KEPT]
        if not places:
            return
        rng = self._rng
        inner = [place for place in places if place.holder is not obj]
        place = rng.choice(inner if inner and rng.random() < 0.8 else places)
        rng.choices(
            (self._replace, self._odd, self._remove, self._add, self._repeat, self._empty),
            (6, 3, 2, 5, 1, 2),
        )[0](place)

    def field(self, type_: Type, key: str) -> Type | None:
        return self._schema.field(type_, key)

    def value(self, type_: Type | None, depth: int = 0, name: str = "") -> Any:
        """One of this type, mostly good."""
        rng = self._rng
        if type_ is None:
            return rng.choice(TEXTS)
        match type_.shape:
            case "object":
                if depth > MOST_DEEP:
                    return {}
                fields = self._schema.fields_of(type_.name)
                picked = [key for key in fields if rng.random() < SHARE]
                return {key: self.value(fields[key], depth + 1, key) for key in picked}
            case "list":
                return [
                    self.value(type_.element, depth + 1, name)
                    for _ in range(rng.choice((0, 1, 1, 2)))
                ]
            case "map":
                keys = rng.sample(NAMES, rng.choice((0, 1, 1, 2)))
                return {key: self.value(type_.element, depth + 1) for key in keys}
            case "integer" | "number":
                return rng.choice(NUMBERS)
            case "boolean":
                return rng.random() < 0.5
            case "string":
                return rng.choice(self._texts(type_, name))
        return rng.choice(({}, {"a": 1}, "a", 1, [], None))

    def _texts(self, type_: Type, name: str) -> tuple[Any, ...]:
        match type_.format:
            case "quantity":
                return QUANTITIES
            case "int-or-string":
                return PORTS
            case "date-time":
                return TIMES
            case "micro-time":
                return MICRO_TIMES
            case "byte":
                return BYTES
        return WORDS.get(name, TEXTS) if self._rng.random() < 0.8 else TEXTS

    def _replace(self, place: Place) -> None:
        key = place.key if isinstance(place.key, str) else ""
        place.holder[place.key] = self.value(place.type, 1, key)

    def _odd(self, place: Place) -> None:
        """Of another type, or nothing."""
        place.holder[place.key] = self._rng.choice(
            (None, None, "", 0, "5", 5, 1.5, True, [], {}, [None], [{}], {"a": "b"}, ["a"], "null")
        )

    def _remove(self, place: Place) -> None:
        del place.holder[place.key]

    def _add(self, place: Place) -> None:
        """A field that is not there yet, or one that nobody knows."""
        rng, value, type_ = self._rng, place.value, place.type
        if isinstance(value, dict) and type_ is not None and type_.shape == "object":
            fields = self._schema.fields_of(type_.name)
            free = [key for key in fields if key not in value]
            if free and rng.random() < 0.9:
                key = rng.choice(free)
                value[key] = self.value(fields[key], 2, key)
                return
            value[rng.choice(("bogus", "Name", "spec ", ""))] = rng.choice((1, "a", None, {}))
        elif isinstance(value, dict) and type_ is not None:
            value[rng.choice(NAMES)] = self.value(type_.element, 2)
        elif isinstance(value, list) and type_ is not None:
            value.append(self.value(type_.element, 2))
        else:
            self._replace(place)

    def _repeat(self, place: Place) -> None:
        if isinstance(place.holder, list):
            place.holder.append(place.value)
        else:
            self._add(place)

    def _empty(self, place: Place) -> None:
        """As Go writes what nobody has set."""
        value = place.value
        by_type: dict[type, Any] = {dict: {}, list: [], str: "", int: 0, bool: False, float: 0}
        place.holder[place.key] = self._rng.choice((None, by_type.get(type(value))))

    def _places(self, value: Any, type_: Type | None) -> Iterator[Place]:
        if isinstance(value, dict):
            for key in sorted(value):
                inner = None if type_ is None else self._schema.field(type_, key)
                yield Place(value, key, inner)
                yield from self._places(value[key], inner)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                inner = None if type_ is None else type_.element
                yield Place(value, index, inner)
                yield from self._places(item, inner)


_KEPT = ("apiVersion", "kind", "metadata", "name")
# What fields of that name mostly say.
WORDS: dict[str, tuple[Any, ...]] = {
    "protocol": ("TCP", "UDP", "SCTP", "tcp", ""),
    "restartPolicy": ("Always", "Never", "OnFailure", "always"),
    "imagePullPolicy": ("Always", "Never", "IfNotPresent", "x"),
    "dnsPolicy": ("ClusterFirst", "Default", "None", "ClusterFirstWithHostNet", "x"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "in"),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", "x"),
    "type": (
        "ClusterIP",
        "NodePort",
        "LoadBalancer",
        "ExternalName",
        "RollingUpdate",
        "Recreate",
        "OnDelete",
        "Opaque",
        "Ready",
        "Localhost",
        "RuntimeDefault",
        "x",
    ),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", "x"),
    "policyTypes": ("Ingress", "Egress", "x"),
    "accessModes": ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "x"),
    "volumeMode": ("Filesystem", "Block", "x"),
    "pathType": ("Exact", "Prefix", "ImplementationSpecific", "x"),
    "scope": ("Namespaced", "Cluster", "x"),
    "namespace": ("default", "sample", "kube-system", "x", ""),
    "concurrencyPolicy": ("Allow", "Forbid", "Replace", "x"),
    "schedule": ("* * * * *", "@hourly", "TZ=UTC * * * * *", "x", "60 * * * *"),
    "completionMode": ("Indexed", "NonIndexed", "x"),
    "failurePolicy": ("Fail", "Ignore", "x"),
    "sideEffects": ("None", "NoneOnDryRun", "Some", "x"),
    "resources": ("pods", "*", "*/*", "pods/*", "pods/status", "x y"),
    "verbs": ("get", "*", "list", "x"),
    "expression": ("true", "object.spec.x == 1", "self.a", "1", "", "size(self) < 5"),
    "ip": ("10.0.0.1", "::1", "127.0.0.1", "010.0.0.1", "x"),
    "cidr": ("10.0.0.0/8", "10.0.0.1/8", "::/0", "x"),
    "ipFamilies": ("IPv4", "IPv6", "x"),
    "ipFamilyPolicy": ("SingleStack", "PreferDualStack", "RequireDualStack", "x"),
    "sessionAffinity": ("None", "ClientIP", "x"),
    "mountPath": ("/a", "/", "a", "", "/a:b", "../a"),
    "path": ("/a", "a", "", "/", "..", "a/../b"),
    "topologyKey": ("kubernetes.io/hostname", "a", "", "a b"),
    "reclaimPolicy": ("Delete", "Retain", "Recycle", "x"),
    "persistentVolumeReclaimPolicy": ("Delete", "Retain", "Recycle", "x"),
    "volumeBindingMode": ("Immediate", "WaitForFirstConsumer", "x"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority", "x"),
    "addressType": ("IPv4", "IPv6", "FQDN", "x"),
    "internalTrafficPolicy": ("Cluster", "Local", "x"),
    "externalTrafficPolicy": ("Cluster", "Local", "x"),
    "scopes": (
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "x",
    ),
    "status": ("True", "False", "Unknown", "x"),
    "matchPolicy": ("Exact", "Equivalent", "x"),
}
