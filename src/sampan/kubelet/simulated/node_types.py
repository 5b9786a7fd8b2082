"""Simulated nodes from a file: types of machines, how many there are of each, and when they fail.

Job: file content → the shape of every node. Pure.
Invariant: a word that means nothing is refused, with the place where it stands.

    apiVersion: simulated.sampan.dev/v1
    kind: Nodes
    types:
    - name: large                         # nodes large-0, large-1, …
      count: 6                            # or names: [a, b], of nodes that have others
      capacity: {cpu: 16, memory: 64Gi, pods: 110, example.com/gpu: 4}
      zones: [a, b, c]                    # in turn, as topology.kubernetes.io/zone
      labels: {disk: ssd}
      taints: [{key: dedicated, value: batch, effect: NoSchedule}]
      devices: [{driver: gpu.example.com, count: 4, attributes: {model: {string: a}}}]
      devicePlugins: [{resource: example.com/nic, count: 2}]
      csiDrivers: [{name: disk.example.com, volumes: 8, topology: [topology.kubernetes.io/zone]}]
      failures: [{at: 30m, for: 10m, zone: a, count: 1}]
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from sampan.api.configuration import ConfigReader
from sampan.api.objects import Obj
from sampan.api.quantity import QuantityError, canonical, from_value, value_of
from sampan.api.rules.durations import long_seconds
from sampan.api.rules.names import Complaints, dns_label, dns_subdomain, label_key, label_value
from sampan.api.rules.nodes import is_extended_resource
from sampan.core.durations import DurationError
from sampan.core.fast_dataclass import dataclass, replace
from sampan.kubelet.node.machine import SIMULATED
from sampan.kubelet.settings import Capacity
from sampan.kubelet.simulated.pretence import (
    NOTHING_PRETENDED,
    Pretence,
    PretendedDriver,
    PretendedPlugin,
)

API_VERSION, KIND = "simulated.sampan.dev/v1", "Nodes"
MOST_NODES, MOST_DEVICES = 50_000, 128  # of a ResourceSlice, as upstream
ZONE_LABEL, TYPE_LABEL = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
MOST_PLUGIN_DEVICES = 1000
_DEVICES = ("driver", "name", "count", "attributes", "capacity", "partitions", "prepares")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TYPE = (
    "name", "count", "names", "capacity", "zones", "labels", "taints", "devices", "devicePlugins",
    "csiDrivers", "failures",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outage:
    """The machine is off for a while, and all of its containers are gone; then it boots."""

    at_seconds: float
    seconds: float | None = None  # None: for good


@dataclass(frozen=True, slots=True)
class NodeShape:
    name: str
    capacity: Capacity | None = None  # None: as all simulated nodes
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    slices: tuple[Obj, ...] = ()  # specs of ResourceSlices
    outages: tuple[Outage, ...] = ()
    pretence: Pretence = NOTHING_PRETENDED

    @property
    def likeness(self) -> str:
        """The same for nodes that say the same of themselves, but for name and addresses."""
        return repr((self.capacity, sorted(self.labels.items()), self.taints))


def shapes_of(written: object) -> tuple[NodeShape, ...]:
    """Raises BadConfiguration with everything that is wrong."""
    reader = ConfigReader()
    document = reader.document(written, KIND, (API_VERSION,))
    reader.known(document, {"apiVersion", "kind", "types"}, "")
    if not document.get("types"):
        reader.wrong("types", "expected a list of types")
    shapes: list[NodeShape] = []
    for number, item in enumerate(reader.items(document.get("types"), "types")):
        shapes += _Type(reader, reader.mapping(item, f"types[{number}]"), number).shapes()
    for name, times in Counter(shape.name for shape in shapes).items():
        if times > 1:
            reader.wrong("types", f"{times} nodes have the name {name}")
    if len(shapes) > MOST_NODES:
        reader.wrong("types", f"{len(shapes)} nodes: at most {MOST_NODES}")
    reader.settle()
    return tuple(_with_known_drivers(shapes))


def _with_known_drivers(shapes: Sequence[NodeShape]) -> Sequence[NodeShape]:
    """A driver that some nodes have is missing on the others."""
    known = frozenset(driver.name for shape in shapes for driver in shape.pretence.drivers)
    if not known:
        return shapes
    return [
        replace(shape, pretence=replace(shape.pretence, known_drivers=known)) for shape in shapes
    ]


class _Type:
    def __init__(self, reader: ConfigReader, given: Obj, number: int) -> None:
        self._reader, self._given, self._path = reader, given, f"types[{number}]"

    def shapes(self) -> list[NodeShape]:
        self._reader.known(self._given, _TYPE, self._path)
        name = str(self._given.get("name") or "")
        self._complain("name", dns_label(name))
        names = self._names(name)
        count = len(names)
        zones = [str(zone) for zone in self._items("zones")]
        for zone in zones:
            self._complain("zones", label_value(zone))
        labels, taints, capacity = self._labels(), self._taints(), self._capacity()
        devices, outages = self._items("devices"), self._outages(count, zones)
        type_label = {} if "names" in self._given else {TYPE_LABEL: name}
        shapes = []
        for at, own in enumerate(names):
            zone_label = {ZONE_LABEL: zones[at % len(zones)]} if zones else {}
            all_labels = {"kubernetes.io/hostname": own, **type_label, **zone_label, **labels}
            shapes.append(NodeShape(
                own, capacity, {**type_label, **zone_label, **labels}, taints,
                tuple(self._slice(item, own, index) for index, item in enumerate(devices)),
                tuple(outages.get(at, ())), self._pretence(capacity, all_labels),
            ))  # fmt: skip
            if self._reader.problems:
                break  # the same again for each of them
        return shapes

    def _names(self, name: str) -> Sequence[str]:
        if "names" not in self._given:
            count = self._count(self._given, "count", 1)
            return [f"{name}-{at}" for at in range(min(count, MOST_NODES + 1))]
        names = [str(own) for own in self._items("names")]
        for own in names:
            self._complain("names", dns_subdomain(own))
        if "count" in self._given:
            self._reader.wrong(f"{self._path}.count", "names says how many there are")
        return names

    def _capacity(self) -> Capacity | None:
        if "capacity" not in self._given:
            return None
        path = f"{self._path}.capacity"
        given, usual = self._reader.mapping(self._given["capacity"], path), SIMULATED.capacity
        texts: dict[str, str] = {}
        for name, amount in given.items():
            self._complain("capacity", label_key(str(name)))
            try:
                texts[str(name)] = canonical(amount)
            except (QuantityError, TypeError, ValueError):
                self._reader.wrong(f"{path}.{name}", f"{amount!r} is no quantity")
        extended = {name: texts[name] for name in texts if is_extended_resource(name)}
        for name in [*texts]:
            if name not in extended and name not in ("cpu", "memory", "ephemeral-storage", "pods"):
                self._reader.wrong(f"{path}.{name}", "no node has such a resource")
        amounts = {name: value_of(text) for name, text in texts.items()}
        if any(amount.value() < 0 for amount in amounts.values()):
            self._reader.wrong(path, "must not be negative")
        usual_bytes = {"memory": usual.memory_bytes, "ephemeral-storage": usual.ephemeral_bytes}
        sizes = {
            name: amounts[name].value() if name in amounts else otherwise
            for name, otherwise in {**usual_bytes, "pods": usual.pods}.items()
        }
        milli = amounts["cpu"].milli() if "cpu" in amounts else usual.cpu_milli
        return Capacity(
            milli, sizes["memory"], sizes["ephemeral-storage"], sizes["pods"], extended=extended
        )

    def _labels(self) -> dict[str, str]:
        given = self._reader.mapping(self._given.get("labels") or {}, f"{self._path}.labels")
        labels = {str(key): str(value) for key, value in given.items()}
        for key, value in labels.items():
            self._complain("labels", (*label_key(key), *label_value(value)))
        return labels

    def _taints(self) -> tuple[Mapping[str, str], ...]:
        taints = []
        for index, item in enumerate(self._items("taints")):
            path = f"{self._path}.taints[{index}]"
            given = self._reader.mapping(item, path)
            self._reader.known(given, ("key", "value", "effect"), path)
            self._complain(f"taints[{index}].key", label_key(str(given.get("key") or "")))
            if given.get("effect") not in EFFECTS:
                self._reader.wrong(f"{path}.effect", f"one of {', '.join(EFFECTS)}")
            taints.append({str(key): str(value) for key, value in given.items()})
        return tuple(taints)

    def _slice(self, item: object, node: str, index: int) -> Obj:
        """Of a driver's devices on one node."""
        path = f"{self._path}.devices[{index}]"
        given = self._reader.mapping(item, path)
        self._reader.known(given, _DEVICES, path)
        driver, stem = str(given.get("driver") or ""), str(given.get("name") or "device")
        self._complain(f"devices[{index}].driver", dns_subdomain(driver))
        self._complain(f"devices[{index}].name", dns_label(stem))
        count = self._count(given, "count", 1, f"devices[{index}]")
        parts = self._count(given, "partitions", 0, f"devices[{index}]")
        if count * max(1, parts) > MOST_DEVICES:
            self._reader.wrong(f"{path}.count", f"at most {MOST_DEVICES}")
            count = parts = 0
        more = {word: given[word] for word in ("attributes", "capacity") if word in given}
        pool = {"name": f"{node}-{index}", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"{stem}-{number}", **more} for number in range(count)]
        if parts:
            divided = self._divided(more.get("capacity"), parts, f"{path}.capacity")
            devices = [part for whole in devices for part in _parts(whole, parts, divided)]
        return {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}

    def _divided(self, capacity: object, parts: int, path: str) -> Obj:
        """What each part of a device has of it."""
        found: Obj = {}
        for name, entry in self._reader.mapping(capacity or {}, path).items():
            try:
                whole = value_of(self._reader.mapping(entry, f"{path}.{name}")["value"])
                found[str(name)] = {"value": str(from_value(whole.value() // parts, whole.format))}
            except (QuantityError, TypeError, ValueError, KeyError):
                self._reader.wrong(f"{path}.{name}", "expected a value that is a quantity")
        return found

    def _pretence(self, capacity: Capacity | None, labels: Mapping[str, str]) -> Pretence:
        plugins = tuple(self._plugin(item, index, capacity)
                        for index, item in enumerate(self._items("devicePlugins")))  # fmt: skip
        drivers = tuple(self._driver(item, index, labels)
                        for index, item in enumerate(self._items("csiDrivers")))  # fmt: skip
        prepares = any(isinstance(item, dict) and item.get("prepares") is True
                       for item in self._items("devices"))  # fmt: skip
        return Pretence(plugins, drivers, prepares=prepares)

    def _plugin(self, item: object, index: int, capacity: Capacity | None) -> PretendedPlugin:
        path = f"{self._path}.devicePlugins[{index}]"
        given = self._reader.mapping(item, path)
        self._reader.known(given, ("resource", "count"), path)
        resource = str(given.get("resource") or "")
        if not is_extended_resource(resource):
            self._reader.wrong(f"{path}.resource", f"{resource!r} is no extended resource")
        if capacity is not None and resource in capacity.extended:
            self._reader.wrong(f"{path}.resource", "capacity says how many there are")
        count = self._count(given, "count", 1, f"devicePlugins[{index}]")
        if count > MOST_PLUGIN_DEVICES:
            self._reader.wrong(f"{path}.count", f"at most {MOST_PLUGIN_DEVICES}")
        return PretendedPlugin(resource, min(count, MOST_PLUGIN_DEVICES))

    def _driver(self, item: object, index: int, labels: Mapping[str, str]) -> PretendedDriver:
        path = f"{self._path}.csiDrivers[{index}]"
        given = self._reader.mapping(item, path)
        self._reader.known(given, ("name", "volumes", "topology", "capacity", "attach"), path)
        name = str(given.get("name") or "")
        self._complain(f"csiDrivers[{index}].name", dns_subdomain(name))
        keys = [str(key) for key in self._reader.items(given.get("topology"), f"{path}.topology")]
        for key in keys:
            if key not in labels:
                self._reader.wrong(f"{path}.topology", f"its nodes have no label {key}")
        size = None
        if "capacity" in given:
            try:
                size = value_of(canonical(given["capacity"])).value()
            except (QuantityError, TypeError, ValueError):
                self._reader.wrong(f"{path}.capacity", f"{given['capacity']!r} is no quantity")
        most = self._count(given, "volumes", 0, f"csiDrivers[{index}]")
        segments = {key: labels[key] for key in keys if key in labels}
        return PretendedDriver(name, most, segments, size, given.get("attach") is not False)

    def _outages(self, count: int, zones: Sequence[str]) -> dict[int, list[Outage]]:
        """By the number of the node."""
        found: dict[int, list[Outage]] = {}
        for index, item in enumerate(self._items("failures")):
            path = f"{self._path}.failures[{index}]"
            given = self._reader.mapping(item, path)
            self._reader.known(given, ("at", "for", "zone", "count"), path)
            zone = given.get("zone")
            if zone is not None and zone not in zones:
                self._reader.wrong(f"{path}.zone", f"there is no zone {zone}")
            most = self._count(given, "count", count, f"failures[{index}]")
            of_node = [zones[at % len(zones)] if zones else None for at in range(count)]
            in_zone = [at for at, its in enumerate(of_node) if zone in (None, its)]
            at_seconds = self._seconds(given.get("at"), f"{path}.at")
            lasts = self._seconds(given["for"], f"{path}.for") if "for" in given else None
            for at in in_zone[:most]:
                found.setdefault(at, []).append(Outage(at_seconds, lasts))
        return {at: self._in_order(outages) for at, outages in found.items()}

    def _in_order(self, outages: list[Outage]) -> list[Outage]:
        ordered = sorted(outages, key=lambda outage: outage.at_seconds)
        for before, after in pairwise(ordered):
            if before.seconds is None or before.at_seconds + before.seconds > after.at_seconds:
                self._reader.wrong(f"{self._path}.failures", "some of one node overlap")
        return ordered

    def _seconds(self, written: object, path: str) -> float:
        try:
            return long_seconds(written)
        except DurationError as error:
            self._reader.wrong(path, str(error))
            return 0.0

    def _items(self, name: str) -> list[Obj]:
        return self._reader.items(self._given.get(name), f"{self._path}.{name}")

    def _count(self, given: Obj, name: str, otherwise: int, below: str = "") -> int:
        count = given.get(name, otherwise)
        if type(count) is int and count >= 0:
            return count
        where = f"{self._path}.{below}.{name}" if below else f"{self._path}.{name}"
        self._reader.wrong(where, f"{count!r} is no number of them")
        return 0

    def _complain(self, name: str, complaints: Complaints) -> None:
        for complaint in complaints[:1]:
            self._reader.wrong(f"{self._path}.{name}", complaint)


def _parts(whole: Obj, parts: int, capacity: Obj) -> list[Obj]:
    """Of one device, each a device of its own."""
    attributes = {**(whole.get("attributes") or {}), "parent": {"string": whole["name"]}}
    more = {"capacity": capacity} if capacity else {}
    return [
        {"name": f"{whole['name']}-part-{number}", "attributes": attributes, **more}
        for number in range(parts)
    ]
