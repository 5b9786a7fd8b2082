"""KubeSchedulerConfiguration v1: a file's content → profiles, extenders and settings. Pure, but for
importing the user's plugins.

Job: read it strictly; every mistake is named with its path; what has no effect here is explained.
Invariant: what is not understood is refused, never passed over.
"""

import base64
import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sampan.api.configuration import ConfigReader, name_in
from sampan.api.objects import Obj
from sampan.api.rules.durations import parse_seconds
from sampan.core.backoff import Backoff
from sampan.core.durations import DurationError
from sampan.scheduler.config.plugin_args import is_known, with_args
from sampan.scheduler.filters.rule import Filter
from sampan.scheduler.plugin import Plugin
from sampan.scheduler.profile import ALL_FILTERS, DEFAULT_PROFILE, Profile
from sampan.scheduler.scores.rule import Score
from sampan.scheduler.settings import Configuration, Election, ExtenderSettings, Tls

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
POINTS = (
    "multiPoint", "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore",
    "score", "reserve", "permit", "preBind", "bind", "postBind",
)  # fmt: skip
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
_ELECTION = {
    "leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceLock", "resourceName",
    "resourceNamespace",
}  # fmt: skip
_TLS = {
    "insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData",
}  # fmt: skip
_EXTENDER_SECONDS = 30.0
_EXTENDER = {
    "urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS",
    "tlsConfig", "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable",
}  # fmt: skip


def read(written: object) -> Configuration:
    """Raises BadConfiguration with everything that is wrong."""
    reader = _Reader()
    made = reader.configuration(written)
    reader.settle()
    return made


class _Reader(ConfigReader):
    def configuration(self, written: object) -> Configuration:
        top = self.mapping(written, "the file")
        if top.get("apiVersion") != API_VERSION or top.get("kind") != KIND:
            found = f"{top.get('apiVersion')} {top.get('kind')}"
            self.wrong("apiVersion", f"{API_VERSION} {KIND} is wanted, not {found}")
            return Configuration()
        self.known(top, _TOP, "")
        self.notes += [f"{name}: {why}" for name, why in NO_EFFECT.items() if name in top]
        profiles = [
            self._profile(item, f"profiles[{at}]")
            for at, item in enumerate(self.items(top.get("profiles"), "profiles"))
        ] or [DEFAULT_PROFILE]
        names = [profile.scheduler_name for profile in profiles]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.wrong("profiles", f"two profiles have the schedulerName {name!r}")
        first = self.number(top, "podInitialBackoffSeconds", 1)
        longest = self.number(top, "podMaxBackoffSeconds", 10)
        if first <= 0 or longest < first:
            self.wrong("podMaxBackoffSeconds", "must not be less than podInitialBackoffSeconds")
            first = longest = 1
        extenders = self.items(top.get("extenders"), "extenders")
        return Configuration(
            tuple(profiles),
            tuple(
                self._extender(extender, f"extenders[{at}]")
                for at, extender in enumerate(extenders)
            ),
            Backoff(first_seconds=float(first), cap_seconds=float(longest)),
            self._election(top.get("leaderElection")),
            tuple(self.notes),
        )

    def _election(self, written: object) -> Election:
        path, usual = "leaderElection", Election()
        made = self.mapping(written or {}, path)
        self.known(made, _ELECTION, path)
        if made.get("resourceLock", "leases") != "leases":
            self.wrong(f"{path}.resourceLock", f"{made['resourceLock']!r} is not leases")
        lease, renew, retry = (
            self._duration(made, field, path, otherwise)
            for field, otherwise in (
                ("leaseDuration", usual.lease_seconds),
                ("renewDeadline", usual.renew_seconds),
                ("retryPeriod", usual.retry_seconds),
            )
        )
        if not lease > renew > retry > 0:
            self.wrong(
                path, "leaseDuration must be longer than renewDeadline, that than retryPeriod"
            )
        return Election(
            made.get("leaderElect", True) is not False,
            str(made.get("resourceNamespace") or usual.namespace),
            str(made.get("resourceName") or usual.name),
            lease,
            renew,
            retry,
        )

    def _duration(self, made: Obj, field: str, path: str, otherwise: float) -> float:
        if field not in made:
            return otherwise
        try:
            return parse_seconds(made[field])
        except DurationError as error:
            self.wrong(f"{path}.{field}", str(error))
            return otherwise

    def _tls(self, written: object, path: str) -> Tls | None:
        if written is None:
            return None
        made = self.mapping(written, path)
        self.known(made, _TLS, path)
        for data, file in (("caData", "caFile"), ("certData", "certFile"), ("keyData", "keyFile")):
            if made.get(data) and made.get(file):
                self.wrong(path, f"{data} and {file} exclude each other")
        has_certificate, has_key = (
            bool(made.get(f"{item}Data") or made.get(f"{item}File")) for item in ("cert", "key")
        )
        if has_certificate != has_key:
            self.wrong(path, "a certificate and its key come together")
        if made.get("insecure") and (made.get("caData") or made.get("caFile")):
            self.wrong(f"{path}.insecure", "it excludes caData and caFile")
        return Tls(
            insecure=bool(made.get("insecure")),
            server_name=str(made.get("serverName") or ""),
            ca=self._pem(made, "ca", path),
            certificate=self._pem(made, "cert", path),
            key=self._pem(made, "key", path),
        )

    def _pem(self, made: Obj, name: str, path: str) -> bytes:
        """From the file's own data (base64), or from the file that it names."""
        try:
            if data := made.get(f"{name}Data"):
                return base64.b64decode(str(data), validate=True)
            if file := made.get(f"{name}File"):
                return Path(str(file)).read_bytes()
        except ValueError:
            self.wrong(f"{path}.{name}Data", "it is no base64")
        except OSError as error:
            self.wrong(f"{path}.{name}File", f"cannot be read: {error.strerror}")
        return b""

    def _profile(self, written: object, path: str) -> Profile:
        made = self.mapping(written, path)
        known = {"schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore"}
        self.known(made, known, path)
        args: dict[str, Obj] = {}
        for at, item in enumerate(self.items(made.get("pluginConfig"), f"{path}.pluginConfig")):
            where = f"{path}.pluginConfig[{at}]"
            entry = self.mapping(item, where)
            args[str(entry.get("name"))] = self.mapping(entry.get("args") or {}, f"{where}.args")
        profile = replace(
            DEFAULT_PROFILE,
            scheduler_name=str(made.get("schedulerName") or DEFAULT_PROFILE.scheduler_name),
        )
        profile = with_args(self, profile, args, f"{path}.pluginConfig")
        return self._with_plugins(
            profile, self.mapping(made.get("plugins") or {}, f"{path}.plugins"), args, path
        )

    def _with_plugins(
        self, profile: Profile, written: Obj, args: Mapping[str, Obj], path: str
    ) -> Profile:
        self.known(written, set(POINTS), f"{path}.plugins")
        own: dict[str, int] = {}
        for point, sets in written.items():
            where = f"{path}.plugins.{point}"
            entry = self.mapping(sets or {}, where)
            self.known(entry, {"enabled", "disabled"}, where)
            for item in self.items(entry.get("disabled"), f"{where}.disabled"):
                profile = self._without(profile, point, name_in(item), where)
            for item in self.items(entry.get("enabled"), f"{where}.enabled"):
                name, weight = name_in(item), int((item or {}).get("weight") or 0)
                if is_known(name):
                    profile = _enable(profile, point, name, weight)
                else:
                    own[name] = max(own.get(name, 0), weight)
        plugins = []
        for name, weight in own.items():
            found = self._import(name, f"{path}.plugins")
            if found is not None:
                plugins.append((found, args.get(name) or {}, weight or 1))
        return replace(profile, plugins=tuple(plugins))

    def _without(self, profile: Profile, point: str, name: str, where: str) -> Profile:
        if name != "*" and not is_known(name):
            self.wrong(f"{where}.disabled", f"there is no plugin {name!r}")
            return profile
        gone = (lambda item: True) if name == "*" else (lambda item: item == name)
        if point in ("filter", "multiPoint"):
            kept = tuple(item for item in profile.filters if not gone(item.name))
            profile = replace(profile, filters=kept)
        if point in ("score", "multiPoint"):
            scores = tuple(score for score in profile.scores if not gone(score[0].name))
            profile = replace(profile, scores=scores)
        if point in ("postFilter", "multiPoint") and gone("DefaultPreemption"):
            profile = replace(profile, preempts=False)
        return profile

    def _import(self, name: str, path: str) -> type[Plugin] | None:
        module, _, cls = name.partition(":")
        if not cls:
            self.wrong(path, f"there is no plugin {name!r}; one of yours is written module:Class")
            return None
        try:
            found = getattr(importlib.import_module(module), cls)
        except (ImportError, AttributeError, SyntaxError) as error:
            self.wrong(path, f"the plugin {name!r} cannot be loaded: {error}")
            return None
        if not (isinstance(found, type) and issubclass(found, Plugin)):
            self.wrong(path, f"{name!r} is no subclass of sampan.scheduler.plugin.Plugin")
            return None
        return found

    def _extender(self, written: object, path: str) -> ExtenderSettings:
        made = self.mapping(written, path)
        self.known(made, _EXTENDER, path)
        url = str(made.get("urlPrefix") or "")
        if not url.startswith(("http://", "https://")):
            self.wrong(f"{path}.urlPrefix", f"{url!r} is no http:// or https:// address")
        seconds = self._duration(made, "httpTimeout", path, _EXTENDER_SECONDS)
        managed = self.items(made.get("managedResources"), f"{path}.managedResources")
        return ExtenderSettings(
            url_prefix=url,
            filter_verb=str(made.get("filterVerb") or ""),
            prioritize_verb=str(made.get("prioritizeVerb") or ""),
            preempt_verb=str(made.get("preemptVerb") or ""),
            bind_verb=str(made.get("bindVerb") or ""),
            weight=int(self.number(made, "weight", 1)),
            timeout_seconds=seconds or _EXTENDER_SECONDS,
            ignorable=bool(made.get("ignorable")),
            node_names_only=bool(made.get("nodeCacheCapable")),
            managed=frozenset(name_in(item) for item in managed),
            tls=self._tls(made.get("tlsConfig"), f"{path}.tlsConfig"),
            not_ours=frozenset(
                name_in(item) for item in managed if (item or {}).get("ignoredByScheduler")
            ),
        )


def _enable(profile: Profile, point: str, name: str, weight: int) -> Profile:
    """In the place that it has in the default profile; a score with the weight that is given."""
    filters, scores = {item.name for item in profile.filters}, dict(_scores(profile))
    if point in ("filter", "multiPoint"):
        filters.add(name)
    if point in ("score", "multiPoint"):
        default = dict(_scores(DEFAULT_PROFILE)).get(name)
        if default is not None:
            scores[name] = (scores.get(name, default)[0], weight or default[1])
    if name == "DefaultPreemption" and point in ("postFilter", "multiPoint"):
        profile = replace(profile, preempts=True)
    order = [score.name for score, _ in DEFAULT_PROFILE.scores]
    return replace(
        profile,
        filters=tuple(item for item in _filters_in_order(profile) if item.name in filters),
        scores=tuple(scores[item] for item in order if item in scores),
    )


def _scores(profile: Profile) -> list[tuple[str, tuple[Score, int]]]:
    return [(score.name, (score, weight)) for score, weight in profile.scores]


def _filters_in_order(profile: Profile) -> list[Filter]:
    """Every rule in its place; those that the profile has are taken from it, with its arguments."""
    own = {item.name: item for item in profile.filters}
    return [own.get(item.name, item) for item in ALL_FILTERS]
