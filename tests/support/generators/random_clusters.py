"""Small random clusters for the scheduler's tests: few values, so that rules meet often.

Job: Hypothesis strategies for Nodes and Pods as API objects, and the snapshot of a cluster.
"""

from collections.abc import Iterable

from hypothesis import strategies as st

from sampan.api.objects import Obj
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.cache.snapshot import Snapshot
from sampan.scheduler.model.assigned_pod import assigned_pod_of
from sampan.scheduler.model.node_info import node_info_of

KEYS, VALUES = ("zone", "disk", "cores"), ("a", "b", "7", "12", "")
ADDRESSES = ("", "0.0.0.0", "10.0.0.1", "10.0.0.2")
_DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
IMAGES = ("web", "web:latest", "registry.example:5000/db:1", "big:2")

_names = st.sampled_from(KEYS)
_values = st.sampled_from(VALUES)
_cpu = st.sampled_from(("0", "100m", "250m", "1", "2", "4"))
_memory = st.sampled_from(("0", "100Mi", "1Gi", "2Gi", "8Gi", "1500000000"))
_gpu = st.sampled_from(("0", "1", "2"))
_effects = st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))

amounts = st.fixed_dictionaries(
    {}, optional={"cpu": _cpu, "memory": _memory, "example.com/gpu": _gpu}
)
taints = st.lists(
    st.fixed_dictionaries({"key": _names, "effect": _effects}, optional={"value": _values}),
    max_size=2,
)
tolerations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from((*KEYS, "node.kubernetes.io/unschedulable")),
            "operator": st.sampled_from(("Exists", "Equal")),
            "value": _values,
            "effect": _effects,
        },
    ),
    max_size=3,
)
requirements = st.fixed_dictionaries(
    {
        "key": _names,
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
        "values": st.lists(_values, min_size=1, max_size=3),
    }
)
_fields = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.sampled_from((["node-0"], ["node-2"], ["none"])),
    }
)
terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(requirements, max_size=2),
        "matchFields": st.lists(_fields, max_size=1),
    },
)
ports = st.lists(
    st.fixed_dictionaries(
        {"containerPort": st.just(80)},
        optional={
            "hostPort": st.sampled_from((80, 443)),
            "hostIP": st.sampled_from(ADDRESSES),
            "protocol": st.sampled_from(("TCP", "UDP")),
        },
    ),
    max_size=2,
)
containers = st.fixed_dictionaries(
    {"name": st.just("c"), "image": st.sampled_from(IMAGES)},
    optional={"resources": st.fixed_dictionaries({"requests": amounts}), "ports": ports},
)

_apps = st.fixed_dictionaries(
    {"app": st.sampled_from(("a", "a", "b"))}, optional={"tier": st.sampled_from(("a", "b"))}
)
_expressions = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("app", "tier")),
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
        "values": st.just(["a"]),
    }
)
_selectors = st.one_of(
    st.just({"matchLabels": {"app": "a"}}),
    st.just({}),
    st.none(),
    st.builds(lambda item: {"matchExpressions": [item]}, _expressions),
)
_topology = st.sampled_from(("zone", "zone", "disk", "kubernetes.io/hostname"))
_pod_terms = st.fixed_dictionaries(
    {"topologyKey": _topology, "labelSelector": _selectors},
    optional={
        "namespaces": st.just(["other"]),
        "namespaceSelector": st.sampled_from(({}, {"matchLabels": {"team": "x"}})),
        "matchLabelKeys": st.just(["tier"]),
        "mismatchLabelKeys": st.just(["tier"]),
    },
)
_plain_terms = st.fixed_dictionaries({"topologyKey": _topology, "labelSelector": _selectors})
_some_terms = st.lists(_plain_terms | _pod_terms, max_size=2)
_weighted = st.fixed_dictionaries(
    {"weight": st.integers(1, 100), "podAffinityTerm": _plain_terms | _pod_terms}
)
_pod_affinity = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": _some_terms,
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(_weighted, max_size=2),
    },
)
_spread = st.fixed_dictionaries(
    {
        "topologyKey": _topology,
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": _selectors,
    },
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": st.sampled_from(("Honor", "Ignore")),
        "nodeTaintsPolicy": st.sampled_from(("Honor", "Ignore")),
        "matchLabelKeys": st.just(["tier"]),
    },
)
_affinities = st.fixed_dictionaries(
    {}, optional={"podAffinity": _pod_affinity, "podAntiAffinity": _pod_affinity}
)
_spreads = st.lists(_spread, max_size=2)
NAMESPACES: dict[str, dict[str, str]] = {"default": {}, "other": {"team": "x"}, "third": {}}


@st.composite
def nodes(draw: st.DrawFn, most: int = 5) -> list[Obj]:
    return [_node(draw, number) for number in range(draw(st.integers(0, most)))]


def _node(draw: st.DrawFn, number: int) -> Obj:
    allocatable = {**draw(amounts), "pods": draw(st.sampled_from(("0", "1", "3", "110")))}
    sizes = st.sampled_from((0, 10_000_000, 500_000_000, 3_000_000_000))
    images = draw(st.lists(st.tuples(st.sampled_from(IMAGES), sizes), max_size=3))
    return {
        "metadata": {
            "name": f"node-{number}",
            "labels": draw(st.dictionaries(_names, _values, max_size=3))
            | {"kubernetes.io/hostname": f"node-{number}"},
        },
        "spec": {"taints": draw(taints), "unschedulable": draw(st.booleans())},
        "status": {
            "allocatable": allocatable,
            "images": [{"names": [name], "sizeBytes": size} for name, size in images],
        },
    }


@st.composite
def pods(draw: st.DrawFn, name: str = "pod", *, with_demands: bool = False) -> Obj:
    affinity: Obj = {}
    if draw(st.booleans()):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": draw(st.lists(terms, max_size=2))
        }
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": draw(st.integers(1, 100)), "preference": draw(terms)}
        for _ in range(draw(st.integers(0, 2)))
    ]
    asked = draw(_affinities) if with_demands else {}
    constraints = draw(_spreads) if with_demands else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": draw(st.sampled_from(tuple(NAMESPACES))),
            "uid": name,
            "labels": draw(_apps),
            **draw(st.sampled_from(({}, {}, _DELETED))),
        },
        "spec": {
            "containers": draw(st.lists(containers, min_size=1, max_size=2)),
            "nodeSelector": draw(st.dictionaries(_names, _values, max_size=1)),
            "affinity": {"nodeAffinity": affinity, **asked},
            "topologySpreadConstraints": constraints,
            "tolerations": draw(tolerations),
            "priority": draw(st.sampled_from((0, 0, 10))),
        },
        "status": {"phase": "Pending"},
    }


@st.composite
def clusters(
    draw: st.DrawFn, *, with_demands: bool = False
) -> tuple[list[Obj], dict[str, list[Obj]]]:
    """Nodes, and the pods on each (also on one that is not there)."""
    there = draw(nodes())
    names = [node["metadata"]["name"] for node in there] + ["gone"]
    placed: dict[str, list[Obj]] = {name: [] for name in names}
    for number in range(draw(st.integers(0, 6))):
        placed[draw(st.sampled_from(names))].append(
            draw(pods(f"placed-{number}", with_demands=with_demands))
        )
    return there, placed


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_one_or_two = st.lists(_plain_terms | _pod_terms, min_size=1, max_size=2)
_one_or_two_weighted = st.lists(_weighted, min_size=1, max_size=2)
# Each is one thing that a pod may ask of others, as (path into its spec, what to put there).
ASKS: dict[str, tuple[tuple[str, ...], st.SearchStrategy[list[Obj]]]] = {
    "near": (("affinity", "podAffinity", _REQUIRED), _one_or_two),
    "apart": (("affinity", "podAntiAffinity", _REQUIRED), _one_or_two),
    "rather near": (("affinity", "podAffinity", _PREFERRED), _one_or_two_weighted),
    "rather apart": (("affinity", "podAntiAffinity", _PREFERRED), _one_or_two_weighted),
    "level": (("topologySpreadConstraints",), st.lists(_spread, min_size=1, max_size=2)),
}


@st.composite
def neighbours(draw: st.DrawFn, name: str = "pod", asks: tuple[str, ...] = ()) -> Obj:
    """A pod that is nothing but labels and what it asks of others: all of `asks`, and perhaps
    one thing more."""
    in_namespace = st.sampled_from(("default", "default", "default", *NAMESPACES))
    spec: Obj = {
        "containers": [{"name": "c", "image": "web"}],
        "affinity": {},
        "topologySpreadConstraints": [],
        "nodeSelector": draw(st.sampled_from(({}, {}, {"zone": "a"}))),
        "tolerations": draw(st.sampled_from(([], [{"operator": "Exists"}]))),
    }
    for ask in sorted({*asks, draw(st.sampled_from((*ASKS, *asks)))}):
        path, values = ASKS[ask]
        inside = spec
        for step in path[:-1]:
            inside = inside.setdefault(step, {})
        inside[path[-1]] = draw(values)
    meta = {"name": name, "namespace": draw(in_namespace), "uid": name, "labels": draw(_apps)}
    return {"metadata": meta | draw(st.sampled_from(({}, {}, {}, _DELETED))), "spec": spec}


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Obj], dict[str, list[Obj]]]:
    """Nodes in a few domains with room for all, and neighbours on them."""
    there = []
    placed: dict[str, list[Obj]] = {}
    for number in range(draw(st.integers(1, 4))):
        name = f"node-{number}"
        domains = draw(
            st.fixed_dictionaries(
                {"zone": st.sampled_from(("a", "b", "b"))}, optional={"disk": st.just("a")}
            )
        )
        if draw(st.integers(0, 5)) == 0:
            del domains["zone"]
        taint = {"key": "disk", "effect": "NoSchedule"}
        there.append(
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **domains}},
                "spec": {"taints": draw(st.sampled_from(([], [], [], [taint])))},
                "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
            }
        )
        count = draw(st.integers(0, 3))
        placed[name] = [draw(neighbours(f"{name}-{item}")) for item in range(count)]
    return there, placed


def cache_of(there: Iterable[Obj], placed: dict[str, list[Obj]]) -> CacheState:
    cache = CacheState()
    for name, labels in NAMESPACES.items():
        cache.put_namespace(name, labels)
    for name, on_it in placed.items():
        for pod in on_it:
            cache.put_pod(pod["metadata"]["uid"], name, assigned_pod_of(pod))
    for node in there:
        cache.put_node(node_info_of(node))
    return cache


def snapshot_of(cluster: tuple[list[Obj], dict[str, list[Obj]]]) -> Snapshot:
    return cache_of(*cluster).snapshot()
