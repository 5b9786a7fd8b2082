"""Plugins that are off unless they are asked for.

Job: AlwaysAdmit, AlwaysDeny, AlwaysPullImages, DenyServiceExternalIPs, EventRateLimit,
    ExtendedResourceToleration, LimitPodHardAntiAffinityTopology, NamespaceAutoProvision,
    NamespaceExists, OwnerReferencesPermissionEnforcement, PodNodeSelector,
    PodTolerationRestriction.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable

import orjson

from sampan.api.errors import ApiError, TooManyRequests, forbidden, not_found
from sampan.api.objects import Obj, annotations_of, meta_of
from sampan.api.pods import all_containers
from sampan.api.resources import EVENTS, NAMESPACES, PODS, SERVICES, by_kind
from sampan.apiserver.admission.chain import CREATE, DELETE, UPDATE, Attributes, Find, Plugin
from sampan.apiserver.authz.chain import Attributes as Asked
from sampan.apiserver.authz.chain import Authorization
from sampan.core.clock import Clock
from sampan.core.records import dataclass

_EVERY = frozenset({CREATE, UPDATE, DELETE})
_WRITES = frozenset({CREATE, UPDATE})


def _refused(attributes: Attributes, why: str) -> ApiError:
    resource = attributes.resource
    return forbidden(resource.plural, resource.group, attributes.name, why)


def _deny(attributes: Attributes) -> None:
    raise _refused(attributes, "admission control is denying all modifications")


ALWAYS_ADMIT = Plugin("AlwaysAdmit", _EVERY)
ALWAYS_DENY = Plugin("AlwaysDeny", _EVERY, validate=_deny)


def _pull_always(attributes: Attributes) -> None:
    if attributes.obj is not None and attributes.is_main(PODS):
        for container in all_containers(attributes.obj):
            container["imagePullPolicy"] = "Always"
        for volume in attributes.obj.get("spec", {}).get("volumes") or ():
            if volume.get("image"):
                volume["image"]["pullPolicy"] = "Always"


def _pulls_always(attributes: Attributes) -> None:
    if attributes.obj is None or not attributes.is_main(PODS):
        return
    if any(one.get("imagePullPolicy") != "Always" for one in all_containers(attributes.obj)):
        raise _refused(attributes, 'spec.containers.imagePullPolicy: must be "Always"')


ALWAYS_PULL_IMAGES = Plugin("AlwaysPullImages", _WRITES, _pull_always, _pulls_always)


def _no_external_ips(attributes: Attributes) -> None:
    new = attributes.obj
    if new is None or not attributes.is_main(SERVICES):
        return
    had = set(((attributes.old or {}).get("spec") or {}).get("externalIPs") or ())
    if set((new.get("spec") or {}).get("externalIPs") or ()) - had:
        raise _refused(attributes, "Use of external IPs is denied by admission control.")


DENY_EXTERNAL_IPS = Plugin("DenyServiceExternalIPs", _WRITES, validate=_no_external_ips)


def _hard_anti_affinity(attributes: Attributes) -> None:
    if attributes.obj is None or not attributes.is_main(PODS):
        return
    affinity = (attributes.obj.get("spec") or {}).get("affinity") or {}
    terms = (affinity.get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    for term in terms or ():
        if term.get("topologyKey") != "kubernetes.io/hostname":
            raise _refused(
                attributes,
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey "
                f"{term.get('topologyKey')} but only key kubernetes.io/hostname is allowed",
            )


LIMIT_HARD_ANTI_AFFINITY = Plugin(
    "LimitPodHardAntiAffinityTopology", _WRITES, validate=_hard_anti_affinity
)


def _tolerate_extended(attributes: Attributes) -> None:
    pod = attributes.obj
    if pod is None or not attributes.is_main(PODS):
        return
    names = {
        name
        for one in all_containers(pod)
        for name in ((one.get("resources") or {}).get("requests") or {})
        if "/" in name and "kubernetes.io/" not in name
    }
    spec = pod.setdefault("spec", {})
    for name in sorted(names):
        wanted = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        if wanted not in (spec.get("tolerations") or ()):
            spec["tolerations"] = [*(spec.get("tolerations") or ()), wanted]


EXTENDED_TOLERATION = Plugin("ExtendedResourceToleration", _WRITES, mutate=_tolerate_extended)


def namespace_exists(find: Find) -> Plugin:
    def validate(attributes: Attributes) -> None:
        if attributes.namespace and find(NAMESPACES, "", attributes.namespace) is None:
            raise not_found("namespaces", "", attributes.namespace)

    return Plugin("NamespaceExists", _EVERY, validate=validate)


def namespace_auto_provision(find: Find, make: Callable[[str], Awaitable[None]]) -> Plugin:
    def mutate(attributes: Attributes) -> Awaitable[None] | None:
        name = attributes.namespace
        if attributes.dry_run or not name or find(NAMESPACES, "", name) is not None:
            return None
        return make(name)

    return Plugin("NamespaceAutoProvision", frozenset({CREATE}), mutate=mutate)


def pod_node_selector(find: Find) -> Plugin:
    key = "scheduler.alpha.kubernetes.io/node-selector"

    def wanted(attributes: Attributes) -> dict[str, str]:
        text = annotations_of(find(NAMESPACES, "", attributes.namespace) or {}).get(key, "")
        pairs = (one.partition("=") for one in text.split(",") if one.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}

    def mutate(attributes: Attributes) -> None:
        if attributes.obj is None or not attributes.is_main(PODS):
            return
        spec = attributes.obj.setdefault("spec", {})
        own = spec.get("nodeSelector") or {}
        more = wanted(attributes)
        if any(own.get(name, value) != value for name, value in more.items()):
            raise _refused(attributes, "pod node label selector conflicts with its namespace node "
                                       "label selector")  # fmt: skip
        if more:
            spec["nodeSelector"] = {**more, **own}

    return Plugin("PodNodeSelector", frozenset({CREATE}), mutate=mutate)


def pod_toleration_restriction(find: Find) -> Plugin:
    start = "scheduler.alpha.kubernetes.io/"

    def of(attributes: Attributes, name: str) -> list[Obj] | None:
        notes = annotations_of(find(NAMESPACES, "", attributes.namespace) or {})
        text = notes.get(start + name)
        if text is None:
            return None
        try:
            found = orjson.loads(text or "[]")
        except ValueError as error:
            raise _refused(attributes, f"the namespace's {name} cannot be read") from error
        return found if isinstance(found, list) else []

    def mutate(attributes: Attributes) -> None:
        if attributes.obj is None or not attributes.is_main(PODS):
            return
        spec = attributes.obj.setdefault("spec", {})
        own = spec.get("tolerations") or []
        more = [one for one in of(attributes, "defaultTolerations") or () if one not in own]
        if more:
            spec["tolerations"] = [*own, *more]
        allowed = of(attributes, "tolerationsWhitelist")
        if allowed and any(not _is_allowed(one, allowed) for one in spec.get("tolerations") or ()):
            why = (
                "pod tolerations (possibly merged with namespace default tolerations) conflict "
                "with its namespace whitelist"
            )
            raise _refused(attributes, why)

    return Plugin("PodTolerationRestriction", frozenset({CREATE, UPDATE}), mutate=mutate)


def _is_allowed(toleration: Obj, allowed: list[Obj]) -> bool:
    fields = ("key", "operator", "value", "effect")
    return any(
        all((one.get(f) or "") in ("", toleration.get(f) or "") for f in fields) for one in allowed
    )


def owner_references(authorization: Authorization) -> Plugin:
    async def check(attributes: Attributes, changed: list[Obj]) -> None:
        user, resource = attributes.user, attributes.resource
        delete = Asked(
            user, "delete", resource.group, resource.plural, "", attributes.namespace,
            attributes.name,
        )  # fmt: skip
        if not (await authorization.decide(delete))[0]:
            why = "cannot set an ownerRef on a resource you can't delete"
            raise _refused(attributes, why)
        for one in changed:
            owner = by_kind(one.get("apiVersion") or "", one.get("kind") or "")
            if not one.get("blockOwnerDeletion") or owner is None:
                continue
            asked = Asked(
                user, "update", owner.group, owner.plural, "finalizers",
                attributes.namespace if owner.namespaced else "", one.get("name") or "",
            )  # fmt: skip
            if not (await authorization.decide(asked))[0]:
                why = (
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you "
                    "can't set finalizers on"
                )
                raise _refused(attributes, why)

    def validate(attributes: Attributes) -> Awaitable[None] | None:
        new = meta_of(attributes.obj or {}).get("ownerReferences") or []
        old = meta_of(attributes.old or {}).get("ownerReferences") or []
        changed = [one for one in new if one not in old]
        return check(attributes, changed) if changed else None

    return Plugin("OwnerReferencesPermissionEnforcement", _WRITES, validate=validate)


@dataclass(frozen=True, slots=True)
class EventLimit:
    kind: str  # Server, Namespace, User, SourceAndObject
    per_second: float
    burst: int
    most: int = 4096  # buckets that are remembered


def event_rate_limit(limits: tuple[EventLimit, ...], clock: Clock) -> Plugin:
    buckets = [(one, _Buckets(one, clock)) for one in limits]

    def validate(attributes: Attributes) -> None:
        if attributes.obj is None or attributes.dry_run or attributes.resource.kind != EVENTS.kind:
            return
        for limit, of in buckets:
            if not of.take(_bucket(limit.kind, attributes)):
                raise TooManyRequests("limit reached on type " + limit.kind)

    return Plugin("EventRateLimit", _WRITES, validate=validate)


def _bucket(kind: str, attributes: Attributes) -> str:
    event = attributes.obj or {}
    match kind:
        case "Namespace":
            return attributes.namespace
        case "User":
            return attributes.user.name
        case "SourceAndObject":
            source, about = event.get("source") or {}, event.get("involvedObject") or {}
            parts = (source.get("component"), source.get("host"), about.get("kind"),
                     about.get("namespace"), about.get("name"), about.get("uid"),
                     about.get("apiVersion"))  # fmt: skip
            return "".join(str(one or "") for one in parts)
    return ""


class _Buckets:
    """Token buckets, the least recently used forgotten first."""

    def __init__(self, limit: EventLimit, clock: Clock) -> None:
        self._limit, self._clock = limit, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> bool:
        now = self._clock.monotonic()
        left, at = self._left.pop(key, (float(self._limit.burst), now))
        left = min(float(self._limit.burst), left + (now - at) * self._limit.per_second)
        good = left >= 1
        self._left[key] = (left - 1 if good else left, now)
        if len(self._left) > self._limit.most:
            self._left.popitem(last=False)
        return good
