"""KubeSchedulerConfiguration v1: a file's content → profiles, extenders and settings. Pure, but for
importing the user's plugins.

Job: read it strictly; every mistake is named with its path; what has no effect here is explained.
Invariant: what is not understood is refused, never passed over.
"""

import importlib
from collections.abc import Mapping
from dataclasses import replace

from sampan.api.objects import Obj
from sampan.core.backoff import Backoff
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import DEFAULT_PROFILE, Profile
from sampan.scheduler.scores.node_resources_fit import STRATEGIES, allocation
from sampan.scheduler.scores.rule import Score
from sampan.scheduler.seconds import seconds_in
from sampan.scheduler.settings import Configuration, ExtenderSettings

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
POINTS = (
    "multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
    "score", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
# Upstream's plugins that are no rule here but part of the loop.
BUILT_IN = ("SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder")
NO_EFFECT = {
    "parallelism": "all nodes are evaluated at once, in one thread",
    "percentageOfNodesToScore": "all nodes are looked at, always",
    "clientConnection": "the scheduler's client is sampan's own",
    "enableProfiling": "there is no profiling endpoint",
    "enableContentionProfiling": "there is no profiling endpoint",
    "delayCacheUntilActive": "the cache is filled when the scheduler leads",
    "healthzBindAddress": "health is served by the API server",
    "metricsBindAddress": "metrics are served by the API server",
    "debuggingConfiguration": "there is no profiling endpoint",
}
_TOP = {
    "apiVersion", "kind", "profiles", "extenders", "podInitialBackoffSeconds",
    "podMaxBackoffSeconds", "leaderElection", *NO_EFFECT,
}  # fmt: skip
_EXTENDER = {
    "urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS",
    "tlsConfig", "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable",
}  # fmt: skip


class BadConfiguration(Exception):
    """`problems` are lines, each with the path of what is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read(written: object) -> Configuration:
    """Raises BadConfiguration with everything that is wrong."""
    reader = _Reader()
    made = reader.configuration(written)
    if reader.problems:
        raise BadConfiguration(reader.problems)
    return made


class _Reader:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def configuration(self, written: object) -> Configuration:
        top = self._object(written, "the file")
        if top.get("apiVersion") != API_VERSION or top.get("kind") != KIND:
            found = f"{top.get('apiVersion')} {top.get('kind')}"
            self._wrong("apiVersion", f"{API_VERSION} {KIND} is wanted, not {found}")
            return Configuration()
        self._known(top, _TOP, "")
        self.notes += [f"{name}: {why}" for name, why in NO_EFFECT.items() if name in top]
        profiles = [
            self._profile(one, f"profiles[{at}]")
            for at, one in enumerate(self._list(top.get("profiles"), "profiles"))
        ] or [DEFAULT_PROFILE]
        names = [one.scheduler_name for one in profiles]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self._wrong("profiles", f"two profiles have the schedulerName {name!r}")
        first = self._number(top, "podInitialBackoffSeconds", 1)
        longest = self._number(top, "podMaxBackoffSeconds", 10)
        if first <= 0 or longest < first:
            self._wrong("podMaxBackoffSeconds", "must not be less than podInitialBackoffSeconds")
            first = longest = 1
        extenders = self._list(top.get("extenders"), "extenders")
        election = self._object(top.get("leaderElection") or {}, "leaderElection")
        return Configuration(
            tuple(profiles),
            tuple(self._extender(one, f"extenders[{at}]") for at, one in enumerate(extenders)),
            Backoff(first_seconds=float(first), cap_seconds=float(longest)),
            election.get("leaderElect", True) is not False,
            tuple(self.notes),
        )

    def _profile(self, written: object, path: str) -> Profile:
        made = self._object(written, path)
        known = {"schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore"}
        self._known(made, known, path)
        args: dict[str, Obj] = {}
        for at, one in enumerate(self._list(made.get("pluginConfig"), f"{path}.pluginConfig")):
            where = f"{path}.pluginConfig[{at}]"
            entry = self._object(one, where)
            args[str(entry.get("name"))] = self._object(entry.get("args") or {}, f"{where}.args")
        profile = replace(
            DEFAULT_PROFILE,
            scheduler_name=str(made.get("schedulerName") or DEFAULT_PROFILE.scheduler_name),
        )
        profile = self._with_args(profile, args, f"{path}.pluginConfig")
        return self._with_plugins(
            profile, self._object(made.get("plugins") or {}, f"{path}.plugins"), args, path
        )

    def _with_plugins(
        self, profile: Profile, written: Obj, args: Mapping[str, Obj], path: str
    ) -> Profile:
        self._known(written, set(POINTS), f"{path}.plugins")
        own: dict[str, int] = {}
        for point, sets in written.items():
            where = f"{path}.plugins.{point}"
            entry = self._object(sets or {}, where)
            self._known(entry, {"enabled", "disabled"}, where)
            for one in self._list(entry.get("disabled"), f"{where}.disabled"):
                profile = self._without(profile, point, str(_name(one)), where)
            for one in self._list(entry.get("enabled"), f"{where}.enabled"):
                name, weight = str(_name(one)), int((one or {}).get("weight") or 0)
                if _is_known(name):
                    profile = _enabled(profile, point, name, weight)
                else:
                    own[name] = max(own.get(name, 0), weight)
        plugins = []
        for name, weight in own.items():
            found = self._imported(name, f"{path}.plugins")
            if found is not None:
                plugins.append((found, args.get(name) or {}, weight or 1))
        return replace(profile, plugins=tuple(plugins))

    def _without(self, profile: Profile, point: str, name: str, where: str) -> Profile:
        if name != "*" and not _is_known(name):
            self._wrong(f"{where}.disabled", f"there is no plugin {name!r}")
            return profile
        gone = (lambda one: True) if name == "*" else (lambda one: one == name)
        if point in ("filter", "multiPoint"):
            kept = tuple(one for one in profile.filters if not gone(one.name))
            profile = replace(profile, filters=kept)
        if point in ("score", "multiPoint"):
            scores = tuple(one for one in profile.scores if not gone(one[0].name))
            profile = replace(profile, scores=scores)
        if point in ("postFilter", "multiPoint") and gone("DefaultPreemption"):
            profile = replace(profile, preempts=False)
        return profile

    def _with_args(self, profile: Profile, args: Mapping[str, Obj], path: str) -> Profile:
        for name, given in args.items():
            given = {
                key: value for key, value in given.items() if key not in ("apiVersion", "kind")
            }
            match name:
                case "NodeResourcesFit":
                    profile = self._with_strategy(profile, given, path)
                case "VolumeBinding":
                    self._known(given, {"bindTimeoutSeconds"}, f"{path}.VolumeBinding")
                    seconds = float(given.get("bindTimeoutSeconds") or 600)
                    profile = replace(profile, volume_seconds=seconds)
                case "DefaultPreemption":
                    known = {"minCandidateNodesPercentage", "minCandidateNodesAbsolute"}
                    self._known(given, known, f"{path}.DefaultPreemption")
                    self.notes.append(f"{path}.DefaultPreemption: all nodes are candidates")
                case _ if _is_known(name) and given:
                    self._wrong(f"{path}.{name}", "its arguments are not supported yet")
                case _:
                    pass
        return profile

    def _with_strategy(self, profile: Profile, given: Obj, path: str) -> Profile:
        where = f"{path}.NodeResourcesFit"
        self._known(given, {"scoringStrategy"}, where)
        strategy = self._object(given.get("scoringStrategy") or {}, f"{where}.scoringStrategy")
        kind = str(strategy.get("type") or "LeastAllocated")
        if kind not in STRATEGIES:
            self._wrong(f"{where}.scoringStrategy.type", f"{kind!r} is none of {STRATEGIES}")
            return profile
        written = self._list(strategy.get("resources"), f"{where}.scoringStrategy.resources")
        resources = {str(_name(one)): int(one.get("weight") or 1) for one in written}
        ratio = self._object(strategy.get("requestedToCapacityRatio") or {}, where)
        shape = [
            (int(one.get("utilization") or 0), int(one.get("score") or 0))
            for one in self._list(ratio.get("shape"), f"{where}.shape")
        ]
        if kind == "RequestedToCapacityRatio" and not shape:
            self._wrong(f"{where}.requestedToCapacityRatio.shape", "at least one point is needed")
            return profile
        score = allocation(kind, resources or {"cpu": 1, "memory": 1}, shape)
        scores = tuple(
            (score, weight) if one.name == score.name else (one, weight)
            for one, weight in profile.scores
        )
        return replace(profile, scores=scores)

    def _imported(self, name: str, path: str) -> type[Plugin] | None:
        module, _, cls = name.partition(":")
        if not cls:
            self._wrong(path, f"there is no plugin {name!r}; one of yours is written module:Class")
            return None
        try:
            found = getattr(importlib.import_module(module), cls)
        except (ImportError, AttributeError, SyntaxError) as error:
            self._wrong(path, f"the plugin {name!r} cannot be loaded: {error}")
            return None
        if not (isinstance(found, type) and issubclass(found, Plugin)):
            self._wrong(path, f"{name!r} is no subclass of sampan.scheduler.plugin.Plugin")
            return None
        return found

    def _extender(self, written: object, path: str) -> ExtenderSettings:
        made = self._object(written, path)
        self._known(made, _EXTENDER, path)
        url = str(made.get("urlPrefix") or "")
        if not url.startswith(("http://", "https://")):
            self._wrong(f"{path}.urlPrefix", f"{url!r} is no http:// or https:// address")
        if made.get("tlsConfig"):
            self._wrong(f"{path}.tlsConfig", "not supported yet")
        seconds = seconds_in(made.get("httpTimeout") or "30s")
        if seconds is None:
            self._wrong(f"{path}.httpTimeout", f"{made.get('httpTimeout')!r} is no duration")
        managed = self._list(made.get("managedResources"), f"{path}.managedResources")
        return ExtenderSettings(
            url_prefix=url,
            filter_verb=str(made.get("filterVerb") or ""),
            prioritize_verb=str(made.get("prioritizeVerb") or ""),
            preempt_verb=str(made.get("preemptVerb") or ""),
            bind_verb=str(made.get("bindVerb") or ""),
            weight=int(made.get("weight") or 1),
            timeout_seconds=seconds or 30.0,
            ignorable=bool(made.get("ignorable")),
            node_names_only=bool(made.get("nodeCacheCapable")),
            managed=frozenset(str(_name(one)) for one in managed),
            not_ours=frozenset(
                str(_name(one)) for one in managed if (one or {}).get("ignoredByScheduler")
            ),
        )

    def _object(self, written: object, path: str) -> Obj:
        if isinstance(written, dict):
            return written
        self._wrong(path, "an object is wanted")
        return {}

    def _list(self, written: object, path: str) -> list[Obj]:
        if written is None:
            return []
        if isinstance(written, list):
            return written
        self._wrong(path, "a list is wanted")
        return []

    def _number(self, made: Obj, name: str, otherwise: int) -> float:
        value = made.get(name, otherwise)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self._wrong(name, f"{value!r} is no number")
        return otherwise

    def _known(self, made: Obj, names: set[str], path: str) -> None:
        for name in made:
            if name not in names:
                self._wrong(f"{path}.{name}".lstrip("."), "unknown field")

    def _wrong(self, path: str, what: str) -> None:
        self.problems.append(f"{path}: {what}")


def _name(one: object) -> object:
    return one.get("name") if isinstance(one, dict) else one


def _is_known(name: str) -> bool:
    rules = (*(one.name for one in DEFAULT_PROFILE.filters), *BUILT_IN)
    return name in rules or any(name == one.name for one, _ in DEFAULT_PROFILE.scores)


def _enabled(profile: Profile, point: str, name: str, weight: int) -> Profile:
    """In the place that it has in the default profile; a score with the weight that is given."""
    filters, scores = {one.name for one in profile.filters}, dict(_scores(profile))
    if point in ("filter", "multiPoint"):
        filters.add(name)
    if point in ("score", "multiPoint"):
        default = dict(_scores(DEFAULT_PROFILE)).get(name)
        if default is not None:
            scores[name] = (scores.get(name, default)[0], weight or default[1])
    if name == "DefaultPreemption" and point in ("postFilter", "multiPoint"):
        profile = replace(profile, preempts=True)
    order = [one.name for one, _ in DEFAULT_PROFILE.scores]
    return replace(
        profile,
        filters=tuple(one for one in DEFAULT_PROFILE.filters if one.name in filters),
        scores=tuple(scores[one] for one in order if one in scores),
    )


def _scores(profile: Profile) -> list[tuple[str, tuple[Score, int]]]:
    return [(one.name, (one, weight)) for one, weight in profile.scores]
