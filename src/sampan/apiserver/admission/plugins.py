"""Which plugins run, in which order. As upstream's recommended order.

Job: build every plugin from what it needs; choose by name what runs.
Invariant: what is not to be switched off (OWN) is not in the list of names.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import field, replace

from sampan.api.objects import Obj
from sampan.api.resources import (
    ENDPOINT_SLICES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    Resource,
)
from sampan.apiserver.admission import (
    certificate_request,
    certificates,
    default_ingress_class,
    default_toleration_seconds,
    limit_ranger,
    namespace_lifecycle,
    node_restriction,
    optional,
    pod_security,
    pod_topology_labels,
    priority,
    role_escalation,
    runtime_class,
    service_account,
    storage,
    taint_nodes_by_condition,
    unenforced,
    webhooks,
)
from sampan.apiserver.admission.chain import Attributes, Plugin, kinds_of
from sampan.apiserver.admission.hook_metrics import HookMetrics
from sampan.apiserver.admission.pod_security import PodSecuritySettings
from sampan.apiserver.admission.resource_quota import Quotas
from sampan.apiserver.admission.services import endpoint_of
from sampan.apiserver.authz.chain import Authorization
from sampan.apiserver.authz.followed import follow
from sampan.apiserver.authz.rbac import RBAC_KINDS, Rbac
from sampan.apiserver.outbound import CallFailed
from sampan.apiserver.registry.generic import Registry
from sampan.apiserver.registry.metadata import new_uid
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics
from sampan.core.records import dataclass

# Off unless they are asked for, as upstream's.
OFF = frozenset({
    "AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "DenyServiceExternalIPs", "EventRateLimit",
    "ExtendedResourceToleration", "LimitPodHardAntiAffinityTopology", "NamespaceAutoProvision",
    "NamespaceExists", "OwnerReferencesPermissionEnforcement", "PodNodeSelector",
    "PodTolerationRestriction",
})  # fmt: skip


_POD = kinds_of(PODS)
_CLAIM = kinds_of(PERSISTENT_VOLUME_CLAIMS)
_REQUEST = frozenset({("certificates.k8s.io", "CertificateSigningRequest")})
# The kinds that a plugin looks at; the others never call it. What is not here looks at every kind.
CONCERNED = {
    "AlwaysPullImages": _POD,
    "CertificateApproval": _REQUEST,
    "CertificateRequester": _REQUEST,
    "CertificateSigning": _REQUEST,
    "CertificateSubjectRestriction": _REQUEST,
    "DefaultIngressClass": kinds_of(default_ingress_class.INGRESSES),
    "DefaultStorageClass": _CLAIM,
    "DefaultTolerationSeconds": _POD,
    "DenyServiceExternalIPs": kinds_of(SERVICES),
    "EventRateLimit": frozenset({("", "Event"), ("events.k8s.io", "Event")}),
    "ExtendedResourceToleration": _POD,
    "LimitPodHardAntiAffinityTopology": _POD,
    "LimitRanger": _POD | _CLAIM,
    "PersistentVolumeClaimResize": _CLAIM,
    "PodNodeSelector": _POD,
    "PodSecurity": _POD | kinds_of(NAMESPACES) | frozenset(pod_security.TEMPLATES),
    "PodTolerationRestriction": _POD,
    "PodTopologyLabels": _POD,
    "Priority": _POD | kinds_of(PRIORITY_CLASSES),
    "RoleEscalation": kinds_of(*RBAC_KINDS),
    "RuntimeClass": _POD,
    "ServiceAccount": _POD,
    "StorageObjectInUseProtection": _CLAIM | kinds_of(PERSISTENT_VOLUMES),
    "TaintNodesByCondition": kinds_of(NODES),
    "UnenforcedPolicies": unenforced.KINDS,
}


class UnknownPlugin(ValueError):
    """A flag names a plugin that does not exist."""


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    enabled: tuple[str, ...] = ()  # beyond the default ones
    disabled: tuple[str, ...] = ()
    pod_security: PodSecuritySettings = field(default_factory=PodSecuritySettings)
    event_limits: tuple[optional.EventLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class PluginParts:
    """What plugins are made of."""

    registry: Registry
    authorization: Authorization
    rbac: Rbac
    mount_tokens: bool
    settings: AdmissionSettings
    make_namespace: Callable[[str], Awaitable[None]]
    metrics: Metrics
    clock: Clock
    rng: random.Random


@dataclass(frozen=True, slots=True)
class Chosen:
    plugins: list[Plugin]
    hooks: tuple[webhooks.Webhooks, ...]  # to be closed with the server


def chosen(parts: PluginParts) -> Chosen:
    """Raises UnknownPlugin."""
    hooks = tuple(_hooks(parts, one) for one in (webhooks.MUTATING, webhooks.VALIDATING))
    ordered = _ordered(parts, *hooks)
    names = [one.name for one in ordered]
    settings = parts.settings
    for name in (*settings.enabled, *settings.disabled):
        if name not in names:
            raise UnknownPlugin(f'admission plugin "{name}" is unknown')
    on = [
        one
        for one in ordered
        if one.name in settings.enabled
        or (one.name not in OFF and one.name not in settings.disabled)
    ]
    own = [
        certificate_request.PLUGIN,
        role_escalation.plugin(parts.rbac, parts.authorization),
        unenforced.PLUGIN,
    ]
    narrowed = [replace(one, kinds=CONCERNED.get(one.name)) for one in (*own, *on)]
    return Chosen(narrowed, hooks)


def _ordered(
    parts: PluginParts, mutating: webhooks.Webhooks, validating: webhooks.Webhooks
) -> list[Plugin]:
    registry, may = parts.registry, parts.authorization
    find, find_all = registry.find, registry.find_all
    settings = parts.settings
    return [
        optional.ALWAYS_ADMIT,
        optional.namespace_auto_provision(find, parts.make_namespace),
        namespace_lifecycle.plugin(find),
        optional.namespace_exists(find),
        optional.LIMIT_HARD_ANTI_AFFINITY,
        limit_ranger.plugin(registry),
        service_account.plugin(find, parts.mount_tokens, parts.rng),
        node_restriction.plugin(find),
        taint_nodes_by_condition.PLUGIN,
        optional.ALWAYS_PULL_IMAGES,
        pod_security.plugin(registry, settings.pod_security),
        optional.pod_node_selector(find),
        priority.plugin(find, find_all),
        default_toleration_seconds.PLUGIN,
        optional.pod_toleration_restriction(find),
        optional.event_rate_limit(settings.event_limits, parts.clock),
        optional.EXTENDED_TOLERATION,
        storage.default_storage_class(find_all),
        storage.IN_USE_PROTECTION,
        optional.owner_references(may),
        storage.claim_resize(find),
        runtime_class.plugin(find),
        certificates.approval(may),
        certificates.signing(may),
        certificates.SUBJECT_RESTRICTION,
        default_ingress_class.plugin(find_all),
        optional.DENY_EXTERNAL_IPS,
        pod_topology_labels.plugin(find),
        webhooks.mutating_plugin(mutating),
        webhooks.validating_plugin(validating),
        Quotas(registry).plugin(),
        optional.ALWAYS_DENY,
    ]


def _hooks(parts: PluginParts, resource: Resource) -> webhooks.Webhooks:
    registry = parts.registry

    def resolve(namespace: str, name: str, port: int) -> tuple[str, int]:
        service = registry.find(SERVICES, namespace, name)
        kind = registry.kind(ENDPOINT_SLICES)
        slices = [kind.items[key].obj for key in kind.keys(namespace)]
        return endpoint_of(namespace, name, port, service, slices)

    hooks = webhooks.Webhooks(
        resource, registry.find, registry.find_all, resolve, _no_conditions,
        HookMetrics(parts.metrics, parts.clock), lambda: new_uid(parts.rng),
    )  # fmt: skip
    follow(registry.kind(resource), lambda _before, _now: hooks.changed(), hooks.changed)
    return hooks


async def _no_conditions(_conditions: list[Obj], _attributes: Attributes) -> bool:
    raise CallFailed("matchConditions are not supported")
