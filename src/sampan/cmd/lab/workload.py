"""A workload of the lab: which pods come when, what they ask for, and how long they run.

Job: file content → a Workload. Pure.
Invariant: a word that means nothing is refused, with the place where it stands.

    apiVersion: simulated.sampan.dev/v1
    kind: Workload
    seed: 7
    until: 6h                              # the latest end; without it, when all is quiet
    objects: [{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, …}]
    streams:
    - name: web                            # pods web-0, web-1, …
      count: 100
      start: 5m
      every: 30s                           # or poisson: 30s, the mean of gaps by chance; or at once
      duration: {uniform: [5m, 15m]}       # or exponential: 10m, or 10m; without it, for ever
      requests: {cpu: 500m, memory: 1Gi}
      priorityClassName: high
      kind: Job                            # whoever is preempted comes back; without it, Pod
      template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {disk: ssd}}}
      variants: [{weight: 3, requests: {cpu: 1}}, {weight: 1, requests: {cpu: 8}}]
    pods:                                  # what was recorded, one by one
    - {name: a, at: 12.5s, duration: 30s, template: {spec: {containers: […]}}}
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from sampan.api.configuration import ConfigReader
from sampan.api.objects import Obj
from sampan.api.quantity import QuantityError, value_of
from sampan.api.resources import Resource, by_kind
from sampan.api.rules.durations import long_seconds
from sampan.api.rules.names import Complaints, dns_label, dns_subdomain
from sampan.core.durations import DurationError
from sampan.core.fast_dataclass import dataclass

API_VERSION, KIND = "simulated.sampan.dev/v1", "Workload"
MOST_PODS = 1_000_000
MOST_SECONDS = 366 * 86400.0
DEFAULT_UNTIL_SECONDS = 30 * 86400.0
_DOCUMENT = ("apiVersion", "kind", "seed", "until", "objects", "streams", "pods")
_VARIANT = ("requests", "duration", "priorityClassName", "template")
_STREAM = ("name", "count", "start", "every", "poisson", "kind", "namespace", "variants", *_VARIANT)
_POD = ("name", "namespace", "at", "duration", "template")
_KINDS = ("Pod", "Job")


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time, or a distribution of them; None as a whole: for ever."""

    form: str  # fixed, uniform, exponential
    low: float  # of fixed the length, of exponential the mean
    high: float = 0.0


@dataclass(frozen=True, slots=True)
class Variant:
    weight: float = 1.0
    requests: Mapping[str, str] = field(default_factory=dict)
    duration: Span | None = None
    priority_class: str = ""
    template: Obj = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    name: str
    count: int
    variants: tuple[Variant, ...]
    start_seconds: float = 0.0
    gap: Span | None = None  # None: all at once
    kind: str = "Pod"
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class RecordedPod:
    name: str
    namespace: str
    at_seconds: float
    duration_seconds: float | None
    template: Obj


@dataclass(frozen=True, slots=True)
class Workload:
    streams: tuple[Stream, ...] = ()
    pods: tuple[RecordedPod, ...] = ()
    objects: tuple[tuple[Resource, Obj], ...] = ()
    seed: int = 0
    until_seconds: float = DEFAULT_UNTIL_SECONDS


def workload_of(written: object) -> Workload:
    """Raises BadConfiguration with everything that is wrong."""
    reader = _Reader()
    document = reader.document(written, KIND, (API_VERSION,))
    reader.known(document, _DOCUMENT, "")
    seed = document.get("seed", 0)
    if type(seed) is not int:
        reader.wrong("seed", f"{seed!r} is no whole number")
    until = DEFAULT_UNTIL_SECONDS
    if "until" in document:
        until = reader.seconds(document["until"], "until")
    workload = Workload(
        tuple(reader.stream(item, f"streams[{number}]")
              for number, item in enumerate(reader.items(document.get("streams"), "streams"))),
        tuple(reader.pod(item, f"pods[{number}]")
              for number, item in enumerate(reader.items(document.get("pods"), "pods"))),
        tuple(reader.objects(document.get("objects"))),
        seed,
        until,
    )  # fmt: skip
    reader.check_names(workload)
    reader.settle()
    return workload


class _Reader(ConfigReader):
    def stream(self, written: object, path: str) -> Stream:
        given = self.mapping(written, path)
        self.known(given, _STREAM, path)
        name, kind = str(given.get("name") or ""), given.get("kind", "Pod")
        self.complain(f"{path}.name", dns_label(name))
        if kind not in _KINDS:
            self.wrong(f"{path}.kind", f"one of {', '.join(_KINDS)}")
        if "every" in given and "poisson" in given:
            self.wrong(path, "every and poisson both say when the next one comes")
        count = given.get("count", 1)
        if type(count) is not int or not 0 <= count <= MOST_PODS:
            self.wrong(f"{path}.count", f"{count!r} is no number from 0 to {MOST_PODS}")
            count = 0
        gap = None
        if "every" in given:
            gap = Span("fixed", self.seconds(given["every"], f"{path}.every"))
        elif "poisson" in given:
            gap = Span("exponential", self.seconds(given["poisson"], f"{path}.poisson"))
        start = self.seconds(given.get("start", 0), f"{path}.start")
        namespace = self._namespace(given, path)
        return Stream(name, count, self._variants(given, path), start, gap, str(kind), namespace)

    def pod(self, written: object, path: str) -> RecordedPod:
        given = self.mapping(written, path)
        self.known(given, _POD, path)
        name = str(given.get("name") or "")
        self.complain(f"{path}.name", dns_subdomain(name))
        lasts = None
        if given.get("duration") is not None:
            lasts = self.seconds(given["duration"], f"{path}.duration")
        template = self._template(given, path)
        at = self.seconds(given.get("at", 0), f"{path}.at")
        return RecordedPod(name, self._namespace(given, path), at, lasts, template)

    def objects(self, written: object) -> list[tuple[Resource, Obj]]:
        found = []
        for number, item in enumerate(self.items(written, "objects")):
            obj = self.mapping(item, f"objects[{number}]")
            resource = by_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
            if resource is None:
                kind = f"{obj.get('apiVersion')} {obj.get('kind')}"
                self.wrong(f"objects[{number}]", f"{kind} is no kind that Kubernetes has")
            else:
                found.append((resource, obj))
        return found

    def check_names(self, workload: Workload) -> None:
        names = [stream.name for stream in workload.streams]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.wrong("streams", f"several have the name {name}")
        places = [(pod.namespace, pod.name) for pod in workload.pods]
        if len({*places}) < len(places):
            self.wrong("pods", "several have one name")
        total = sum(stream.count for stream in workload.streams) + len(workload.pods)
        if not 0 < total <= MOST_PODS:
            self.wrong("streams", f"{total} pods: from 1 to {MOST_PODS}")

    def seconds(self, written: object, path: str) -> float:
        try:
            found = long_seconds(written)
        except DurationError as error:
            self.wrong(path, str(error))
            return 0.0
        if found > MOST_SECONDS:
            self.wrong(path, "at most a year")
        return found

    def complain(self, path: str, complaints: Complaints) -> None:
        for complaint in complaints[:1]:
            self.wrong(path, complaint)

    def _namespace(self, given: Obj, path: str) -> str:
        namespace = str(given.get("namespace") or "default")
        self.complain(f"{path}.namespace", dns_label(namespace))
        return namespace

    def _variants(self, given: Obj, path: str) -> tuple[Variant, ...]:
        """What each adds to, or has instead of, what the stream says."""
        common = {word: given[word] for word in _VARIANT if word in given}
        written = self.items(given.get("variants"), f"{path}.variants")
        if not written:
            return (self._variant(common, path),)
        found = []
        for number, item in enumerate(written):
            own = self.mapping(item, f"{path}.variants[{number}]")
            self.known(own, ("weight", *_VARIANT), f"{path}.variants[{number}]")
            found.append(self._variant({**common, **own}, f"{path}.variants[{number}]"))
        if not any(variant.weight for variant in found):
            self.wrong(f"{path}.variants", "none has a weight")
        return tuple(found)

    def _variant(self, given: Obj, path: str) -> Variant:
        weight = given.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < 1e9:
            self.wrong(f"{path}.weight", f"{weight!r} is no weight")
            weight = 0
        requests = self.mapping(given.get("requests") or {}, f"{path}.requests")
        for name, amount in requests.items():
            try:
                value_of(amount)
            except (QuantityError, AttributeError):
                self.wrong(f"{path}.requests.{name}", f"{amount!r} is no quantity")
        return Variant(
            float(weight),
            {str(name): str(amount) for name, amount in requests.items()},
            self._span(given["duration"], f"{path}.duration") if "duration" in given else None,
            str(given.get("priorityClassName") or ""),
            self._template(given, path),
        )

    def _template(self, given: Obj, path: str) -> Obj:
        template = self.mapping(given.get("template") or {}, f"{path}.template")
        self.known(template, ("metadata", "spec"), f"{path}.template")
        for part in template:
            self.mapping(template[part], f"{path}.template.{part}")
        return template

    def _span(self, written: object, path: str) -> Span | None:
        if written in (None, "never"):
            return None
        if not isinstance(written, dict):
            return Span("fixed", self.seconds(written, path))
        self.known(written, ("uniform", "exponential"), path)
        if len(written) != 1:
            self.wrong(path, "expected uniform: [LEAST, MOST], or exponential: MEAN")
            return None
        if "exponential" in written:
            return Span("exponential", self.seconds(written["exponential"], f"{path}.exponential"))
        bounds = self.items(written.get("uniform"), f"{path}.uniform")
        if len(bounds) != 2:
            self.wrong(f"{path}.uniform", "expected [LEAST, MOST]")
            return None
        low, high = self._bounds(bounds, f"{path}.uniform")
        return Span("uniform", low, high)

    def _bounds(self, written: Sequence[object], path: str) -> tuple[float, float]:
        low, high = (self.seconds(bound, path) for bound in written)
        if low > high:
            self.wrong(path, "the least is more than the most")
        return low, high
