"""The table of strategies: a resource's own, or the default.

Job: one lookup from a resource to its strategy; kinds that are not named have the plain one.
"""

import base64
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from weakref import WeakKeyDictionary

from sampan.api import features
from sampan.api.calls import Call
from sampan.api.custom.custom_version import CustomVersion, custom_of
from sampan.api.gated_fields.dropping import dropping
from sampan.api.objects import Obj, annotations_of, spec_of, time_text
from sampan.api.resources import Resource
from sampan.apiserver.registry import (
    certificate_signing_requests,
    custom_resource_definitions,
    jobs,
    namespaces,
    pods,
)
from sampan.apiserver.registry.custom_resources import strategy_of
from sampan.apiserver.registry.deletion import NOT_COLLECTED
from sampan.apiserver.registry.list_options import check_listing
from sampan.apiserver.registry.metadata import bump_generation
from sampan.apiserver.registry.selection import Selection, selection_of
from sampan.apiserver.registry.services import service_strategy
from sampan.apiserver.registry.strategy import Strategy, flag_getter, path_getter
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import Clock
from sampan.core.digits import is_digits

_GENERATION = frozenset({
    "customresourcedefinitions.apiextensions.k8s.io", "cronjobs.batch", "daemonsets.apps",
    "deployments.apps", "endpointslices.discovery.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "deviceclasses.resource.k8s.io", "devicetaintrules.resource.k8s.io",
    "ingressclasses.networking.k8s.io",
    "ingresses.networking.k8s.io", "jobs.batch",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy", "podtemplates",
    "priorityclasses.scheduling.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "replicasets.apps", "replicationcontrollers", "resourceslices.resource.k8s.io",
    "statefulsets.apps", "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
})  # fmt: skip

_AUTOSCALERS = "horizontalpodautoscalers.autoscaling"

# Kinds whose PUT must carry a resourceVersion; with a version: in that one alone.
_CONDITIONAL_ONLY = frozenset({
    "apiservices.apiregistration.k8s.io", "clustertrustbundles.certificates.k8s.io",
    "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
    "leases.coordination.k8s.io", "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "podcertificaterequests.certificates.k8s.io", "poddisruptionbudgets.policy",
    "runtimeclasses.node.k8s.io", "storageversionmigrations.storagemigration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "v1 devicetaintrules.resource.k8s.io", "volumeattachments.storage.k8s.io",
})  # fmt: skip

# Kinds that a PUT creates.
_CREATED_BY_PUT = frozenset({
    "clusterrolebindings.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
    "endpoints", "events", "events.events.k8s.io", "leases.coordination.k8s.io", "limitranges",
    "rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
    "runtimeclasses.node.k8s.io", "services",
})  # fmt: skip

_RETURNS_DELETED = frozenset({
    "persistentvolumeclaims", "persistentvolumes", "podtemplates", "resourcequotas",
    "serviceaccounts", "services", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
    "storageclasses.storage.k8s.io", "volumeattachments.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io", "deviceclasses.resource.k8s.io",
    "devicetaintrules.resource.k8s.io", "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io",
})  # fmt: skip

# A Deployment's annotations go on to its ReplicaSets, a slice's labels say whose it is.
_GENERATION_METADATA = {
    "deployments.apps": "annotations",
    "endpointslices.discovery.k8s.io": "labels",
}
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
# What a claim may be made from, where it says so in the old field: (group, kind).
_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _event_source(event: Obj) -> str:
    source = (event.get("source") or {}).get("component")
    return str(source or event.get("reportingComponent") or "")


_EVENT_FIELDS = {
    **{f"involvedObject.{item}": path_getter("involvedObject", item) for item in _INVOLVED},
    "reason": path_getter("reason"),
    "reportingComponent": path_getter("reportingComponent"),
    "source": _event_source,
    "type": path_getter("type"),
}
_EVENT_V1_FIELDS = {
    **{f"regarding.{item}": path_getter("involvedObject", item) for item in _INVOLVED},
    "reason": path_getter("reason"),
    "reportingController": path_getter("reportingComponent"),
    "type": path_getter("type"),
}


def _string_data(secret: Obj) -> None:
    """stringData is for writing only: it is kept in data, and wins over what is there."""
    plain = secret.pop("stringData", None)
    if plain:
        data = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **data}


def _without_new_config(node: Obj, old: Obj) -> None:
    """What a node says of a configuration that nobody can set any more."""
    if (old.get("status") or {}).get("config") is None:
        (node.get("status") or {}).pop("config", None)


def _new_claim(claim: Obj) -> None:
    claim["status"] = {"phase": "Pending"}
    spec = claim["spec"]
    source = spec.get("dataSource")
    if source is not None and (source.get("apiGroup") or "", source.get("kind")) not in _SOURCES:
        del spec["dataSource"]  # as EnforceDataSourceBackwardsCompatibility


def _new_volume(volume: Obj) -> None:
    since = volume["metadata"]["creationTimestamp"]
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}


def _first_template_generation(daemon_set: Obj) -> None:
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = "1"


def _next_template_generation(new: Obj, old: Obj) -> None:
    """An old field, which lives on as an annotation: one more with every change of the template."""
    had = annotations_of(old).get(_TEMPLATE_GENERATION) or "0"
    same = (new.get("spec") or {}).get("template") == (old.get("spec") or {}).get("template")
    number = int(had) if is_digits(had) else 0
    annotations = new["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(number if same else number + 1)


def _same_template_generation(new: Obj, old: Obj) -> None:
    annotations = new["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = annotations_of(old).get(_TEMPLATE_GENERATION) or "0"


def _drop_freed_devices(new: Obj, old: Obj) -> None:
    """What drivers said of devices that the claim no longer has goes with them."""
    status = new.get("status") or {}
    freed = _allocated_devices(old) - _allocated_devices(new)
    if freed and status.get("devices"):
        kept = [each for each in status["devices"] if _device_of(each) not in freed]
        new["status"] = {**status, "devices": kept}
        if not kept:
            del new["status"]["devices"]


def _allocated_devices(claim: Obj) -> set[tuple[str, ...]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return {_device_of(each) for each in (allocation.get("devices") or {}).get("results") or ()}


def _drop_topology(slice_: Obj) -> None:
    """What v1beta1 had; v1 reads it and never takes it."""
    for endpoint in slice_.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def _drop_new_topology(new: Obj, old: Obj) -> None:
    if new.get("endpoints") != old.get("endpoints"):
        _drop_topology(new)


def _device_of(entry: Obj) -> tuple[str, ...]:
    return tuple(str(entry.get(key)) for key in ("driver", "pool", "device"))


_OWN = {
    "pods": pods.STRATEGY,
    "services": service_strategy.STRATEGY,
    # A node registers itself with its status.
    "nodes": Strategy(
        keeps_status_on_create=True,
        prepare_status=_without_new_config,
        fields={"spec.unschedulable": flag_getter("spec", "unschedulable")},
    ),
    "daemonsets.apps": Strategy(
        prepare_create=_first_template_generation,
        prepare_update=_next_template_generation,
        prepare_status=_same_template_generation,
    ),
    # Has none at first, and one more with every change.
    "csidrivers.storage.k8s.io": Strategy(prepare_update=bump_generation),
    "persistentvolumeclaims": Strategy(prepare_create=_new_claim),
    "secrets": Strategy(
        prepare_create=_string_data,
        prepare_update=lambda new, _old: _string_data(new),
        fields={"type": path_getter("type")},
    ),
    "replicationcontrollers": Strategy(
        fields={"status.replicas": path_getter("status", "replicas")},
        default_propagation="Orphan",
    ),
    "limitranges": Strategy(names_the_nameless=True),
    "endpointslices.discovery.k8s.io": Strategy(
        prepare_create=_drop_topology,
        prepare_update=_drop_new_topology,
    ),
    "jobs.batch": jobs.STRATEGY,
    "customresourcedefinitions.apiextensions.k8s.io": custom_resource_definitions.STRATEGY,
    "certificatesigningrequests.certificates.k8s.io": certificate_signing_requests.STRATEGY,
    "clustertrustbundles.certificates.k8s.io": Strategy(
        fields={"spec.signerName": path_getter("spec", "signerName")}
    ),
    "podcertificaterequests.certificates.k8s.io": Strategy(
        fields={
            f"spec.{name}": path_getter("spec", name)
            for name in ("signerName", "podName", "nodeName")
        }
    ),
    "resourceclaims.resource.k8s.io": Strategy(prepare_status=_drop_freed_devices),
    "events": Strategy(fields=_EVENT_FIELDS, default_propagation=NOT_COLLECTED),
    "events.events.k8s.io": Strategy(fields=_EVENT_V1_FIELDS, default_propagation=NOT_COLLECTED),
}


def volume_strategy(clock: Clock) -> Strategy:
    """Of persistent volumes, which remember since when they are in their phase."""

    def prepare_status(new: Obj, old: Obj) -> None:
        status, before = new.get("status") or {}, old.get("status") or {}
        since = before.get("lastPhaseTransitionTime")
        if status.get("lastPhaseTransitionTime") not in (None, since):
            return  # who writes it knows better
        if status.get("phase") != before.get("phase"):
            since = time_text(clock.now())
        if since:
            new["status"] = {**status, "lastPhaseTransitionTime": since}

    return Strategy(prepare_create=_new_volume, prepare_status=prepare_status)


def slice_strategy(clock: Clock) -> Strategy:
    """Of ResourceSlices, whose devices' taints have a date."""

    def date(slice_: Obj) -> None:
        for device in spec_of(slice_).get("devices") or ():
            for taint in (device or {}).get("taints") or ():
                _date(taint, clock)

    return Strategy(
        prepare_create=date,
        prepare_update=lambda new, _old: date(new),
        fields={
            "spec.nodeName": path_getter("spec", "nodeName"),
            "spec.driver": path_getter("spec", "driver"),
        },
    )


def taint_rule_strategy(clock: Clock) -> Strategy:
    """Of DeviceTaintRules; a taint with another effect has a new date, unless one is given."""

    def date_changed(new: Obj, old: Obj) -> None:
        taint, before = (spec_of(each).get("taint") or {} for each in (new, old))
        _date(taint, clock)
        same_time = taint.get("timeAdded") == before.get("timeAdded")
        if same_time and taint.get("effect") != before.get("effect"):
            taint["timeAdded"] = time_text(clock.now())

    return Strategy(
        prepare_create=lambda rule: _date(spec_of(rule).get("taint"), clock),
        prepare_update=date_changed,
    )


def _date(taint: Obj | None, clock: Clock) -> None:
    if taint and not taint.get("timeAdded"):
        taint["timeAdded"] = time_text(clock.now())


def _counts(name: str) -> bool:
    """Kinds that have a generation by a feature gate."""
    return name == _AUTOSCALERS and features.enabled("HPAGeneration")


class Strategies:
    def __init__(
        self, settings: ApiServerSettings, stateful: Mapping[str, Strategy] = MappingProxyType({})
    ) -> None:
        """`stateful`: of kinds whose strategy keeps something, by group resource."""
        self._settings = settings
        self._own = {
            **_OWN,
            "namespaces": namespaces.strategy(settings.ca_bundle_pem),
            **stateful,
        }
        self._known: dict[tuple[str, str, str], Strategy] = {}
        self._custom: WeakKeyDictionary[CustomVersion, Strategy] = WeakKeyDictionary()

    def of(self, resource: Resource) -> Strategy:
        custom = custom_of(resource)
        if custom is not None:
            return self._custom_strategy(custom)
        key = (resource.group, resource.plural, resource.version)
        strategy = self._known.get(key)
        if strategy is None:
            strategy = self._known[key] = self._strategy(resource)
        return strategy

    def _custom_strategy(self, custom: CustomVersion) -> Strategy:
        found = self._custom.get(custom)
        if found is None:
            found = self._custom[custom] = strategy_of(custom)
        return found

    def selection(self, call: Call) -> Selection:
        """What a list or watch is about. Raises BadRequest, Invalid."""
        strategy, check = self.of(call.resource), partial(check_listing, call)
        return selection_of(call.resource, strategy, call.name, call.options, check)

    def _strategy(self, resource: Resource) -> Strategy:
        name = resource.group_resource
        strategy = self._own.get(name, Strategy())
        return replace(
            strategy,
            drop_gated=dropping(name),
            has_generation=strategy.has_generation or name in _GENERATION or _counts(name),
            generation_metadata=_GENERATION_METADATA.get(name, ""),
            unconditional_update=not {name, f"{resource.version} {name}"} & _CONDITIONAL_ONLY,
            creates_on_update=name in _CREATED_BY_PUT,
            returns_deleted=strategy.returns_deleted or name in _RETURNS_DELETED,
            ttl_seconds=self._settings.event_ttl_seconds if resource.kind == "Event" else 0,
        )
