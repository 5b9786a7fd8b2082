"""The arguments of upstream's plugins: `pluginConfig` of a profile → the profile with them. Pure.

Job: one function for each plugin that has arguments.
Invariant: what is not understood is refused, never passed over.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from sampan.api import features
from sampan.api.configuration import ConfigReader, name_in
from sampan.api.objects import Obj
from sampan.api.rules.node_selectors import Requirements, Term, term_of
from sampan.scheduler.cache.default_spread import SYSTEM_DEFAULTS, Default, Defaults
from sampan.scheduler.filters.node_affinity import with_added
from sampan.scheduler.filters.pod_topology_spread import evenness
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.profile import ALL_FILTERS, DEFAULT_PROFILE, Profile
from sampan.scheduler.scores.balanced_allocation import balancing
from sampan.scheduler.scores.inter_pod_affinity import nearness
from sampan.scheduler.scores.node_affinity import liking
from sampan.scheduler.scores.node_resources_fit import STRATEGIES, allocation
from sampan.scheduler.scores.pod_topology_spread import levelling
from sampan.scheduler.scores.rule import Score
from sampan.scheduler.scores.volume_binding import capacity_scoring

# Upstream's plugins that are no rule here but part of the loop.
BUILT_IN = ("SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder")
_MOST_SHAPE_POINTS, _MOST_HARD_WEIGHT = 10, 100


def is_known(name: str) -> bool:
    rules = (*(item.name for item in ALL_FILTERS), *BUILT_IN)
    return name in rules or any(name == score.name for score, _ in DEFAULT_PROFILE.scores)


def with_args(
    reader: ConfigReader, profile: Profile, args: Mapping[str, Obj], path: str
) -> Profile:
    for name, written in args.items():
        given = {key: value for key, value in written.items() if key not in ("apiVersion", "kind")}
        where = f"{path}.{name}"
        if name in _READERS:
            profile = _READERS[name](reader, profile, given, where)
        elif is_known(name) and given:
            reader.wrong(where, "it takes no arguments")
    return profile


def _volume_binding(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"bindTimeoutSeconds", "shape"}, where)
    seconds = reader.number(given, "bindTimeoutSeconds", 600)
    if seconds < 0:
        reader.wrong(f"{where}.bindTimeoutSeconds", f"{seconds} is less than 0")
    profile = replace(profile, volume_seconds=float(seconds))
    shape = _shape(reader, given, f"{where}.shape")
    if shape and not features.enabled("StorageCapacityScoring"):
        why = "remove it or turn on the feature gate StorageCapacityScoring"
        reader.wrong(f"{where}.shape", f"unexpected field `shape`, {why}")
    return _with_score(profile, capacity_scoring(shape)) if shape else profile


def _preemption(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"minCandidateNodesPercentage", "minCandidateNodesAbsolute"}, where)
    reader.notes.append(f"{where}: all nodes are candidates")
    return profile


def _fit(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"scoringStrategy", "ignoredResources", "ignoredResourceGroups"}, where)
    profile = replace(
        profile,
        ignored=_names(reader, given, "ignoredResources", where),
        ignored_groups=_names(reader, given, "ignoredResourceGroups", where),
    )
    where = f"{where}.scoringStrategy"
    strategy = reader.mapping(given.get("scoringStrategy") or {}, where)
    reader.known(strategy, {"type", "resources", "requestedToCapacityRatio"}, where)
    kind = str(strategy.get("type") or "LeastAllocated")
    if kind not in STRATEGIES:
        reader.wrong(f"{where}.type", f"{kind!r} is none of {STRATEGIES}")
        return profile
    resources = _weights(reader, strategy, where)
    ratio = reader.mapping(strategy.get("requestedToCapacityRatio") or {}, where)
    shape = _shape(reader, ratio, f"{where}.requestedToCapacityRatio.shape")
    if kind == "RequestedToCapacityRatio" and not shape:
        reader.wrong(f"{where}.requestedToCapacityRatio.shape", "at least one point is needed")
        return profile
    return _with_score(profile, allocation(kind, resources or {"cpu": 1, "memory": 1}, shape))


def _balanced_allocation(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"resources"}, where)
    resources = _weights(reader, given, where)
    for name, weight in resources.items():
        if weight != 1:
            reader.wrong(f"{where}.resources", f"the weight of {name} must be 1")
    return _with_score(profile, balancing(tuple(resources))) if resources else profile


def _inter_pod_affinity(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}, where)
    weight = int(reader.number(given, "hardPodAffinityWeight", 1))
    if not 0 <= weight <= _MOST_HARD_WEIGHT:
        reader.wrong(f"{where}.hardPodAffinityWeight", f"{weight} is not between 0 and 100")
    ignores = bool(given.get("ignorePreferredTermsOfExistingPods"))
    return _with_score(profile, nearness(weight, ignores_others_wishes=ignores))


def _node_affinity(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"addedAffinity"}, where)
    where = f"{where}.addedAffinity"
    added = reader.mapping(given.get("addedAffinity") or {}, where)
    required, preferred = (
        f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred")
    )
    reader.known(added, {required, preferred}, where)
    if required in added:
        terms = reader.mapping(added[required], where).get("nodeSelectorTerms")
        found = [_term(reader, item, where) for item in reader.items(terms, where)]
        if not found:
            reader.wrong(f"{where}.{required}.nodeSelectorTerms", "at least one is needed")
        profile = _with_filter(profile, with_added(tuple(found)))
    liked = [
        (int(item.get("weight") or 0), _term(reader, item.get("preference"), where))
        for item in reader.items(added.get(preferred), where)
    ]
    return _with_score(profile, liking(tuple(liked))) if liked else profile


def _spread(reader: ConfigReader, profile: Profile, given: Obj, where: str) -> Profile:
    reader.known(given, {"defaultConstraints", "defaultingType"}, where)
    kind = given.get("defaultingType") or "System"
    written = reader.items(given.get("defaultConstraints"), f"{where}.defaultConstraints")
    if kind not in ("System", "List"):
        reader.wrong(f"{where}.defaultingType", f"{kind!r} is none of ('System', 'List')")
        return profile
    if kind == "System" and written:
        reader.wrong(
            f"{where}.defaultConstraints", "must be empty with defaultingType System, the default"
        )
    made = [
        _constraint(reader, item, f"{where}.defaultConstraints[{at}]")
        for at, item in enumerate(written)
    ]
    defaults = SYSTEM_DEFAULTS if kind == "System" else Defaults(tuple(made))
    return _with_score(_with_filter(profile, evenness(defaults)), levelling(defaults))


def _constraint(reader: ConfigReader, written: Obj, where: str) -> Default:
    one = reader.mapping(written, where)
    reader.known(one, {"maxSkew", "topologyKey", "whenUnsatisfiable"}, where)
    skew = reader.number(one, "maxSkew", 0)
    if skew < 1:
        reader.wrong(f"{where}.maxSkew", f"{skew} is not greater than 0")
    if not one.get("topologyKey"):
        reader.wrong(f"{where}.topologyKey", "it is needed")
    what = one.get("whenUnsatisfiable")
    if what not in ("DoNotSchedule", "ScheduleAnyway"):
        reader.wrong(f"{where}.whenUnsatisfiable", f"{what!r}: DoNotSchedule or ScheduleAnyway")
    return Default(str(one.get("topologyKey")), int(skew), what == "DoNotSchedule")


def _term(reader: ConfigReader, written: object, where: str) -> Term:
    one = reader.mapping(written, where)
    reader.known(one, {"matchExpressions", "matchFields"}, where)
    for kind in ("matchExpressions", "matchFields"):
        for requirement in reader.items(one.get(kind), f"{where}.{kind}"):
            made = reader.mapping(requirement, f"{where}.{kind}")
            if not made.get("key") or not made.get("operator"):
                reader.wrong(f"{where}.{kind}", "key and operator are needed")
                return Term(Requirements(), Requirements())
    return term_of(one)


def _weights(reader: ConfigReader, given: Obj, where: str) -> dict[str, int]:
    found = {}
    for at, item in enumerate(reader.items(given.get("resources"), f"{where}.resources")):
        entry = reader.mapping(item, f"{where}.resources[{at}]")
        weight = reader.number(entry, "weight", 1)
        if not 1 <= weight <= 100:
            reader.wrong(f"{where}.resources[{at}].weight", f"{weight} is not between 1 and 100")
        found[name_in(entry)] = int(weight)
    return found


def _shape(reader: ConfigReader, ratio: Obj, where: str) -> list[tuple[int, int]]:
    points = []
    for item in reader.items(ratio.get("shape"), where):
        entry = reader.mapping(item, where)
        at, score = (int(reader.number(entry, name, 0)) for name in ("utilization", "score"))
        if not 0 <= at <= 100:
            reader.wrong(where, f"the utilization {at} is not between 0 and 100")
        if not 0 <= score <= _MOST_SHAPE_POINTS:
            reader.wrong(where, f"the score {score} is not between 0 and {_MOST_SHAPE_POINTS}")
        points.append((at, score))
    if any(after[0] <= before[0] for before, after in pairwise(points)):
        reader.wrong(where, "utilization must grow from point to point")
    return points


def _names(reader: ConfigReader, given: Obj, field: str, where: str) -> frozenset[str]:
    return frozenset(str(item) for item in reader.items(given.get(field), f"{where}.{field}"))


def _with_filter(profile: Profile, rule: Filter) -> Profile:
    filters = tuple(rule if item.name == rule.name else item for item in profile.filters)
    return replace(profile, filters=filters)


def _with_score(profile: Profile, rule: Score) -> Profile:
    scores = tuple(
        (rule if score.name == rule.name else score, weight) for score, weight in profile.scores
    )
    return replace(profile, scores=scores)


_READERS: Mapping[str, Callable[[ConfigReader, Profile, Obj, str], Profile]] = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "PodTopologySpread": _spread,
    "VolumeBinding": _volume_binding,
    "DefaultPreemption": _preemption,
}
