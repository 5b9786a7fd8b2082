"""Tables: objects as rows, so that every client shows them the same way.

Job: which printer a resource has; objects → meta.k8s.io Table. Pure.
Invariant: each row has one cell per column.
To give a kind columns of its own: write its cells in printers/, add it to _PRINTERS.
"""

from collections.abc import Iterable
from typing import Any

from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import BadRequest, value_text
from sampan.api.objects import Obj, meta_of, name_of
from sampan.api.resources import Resource
from sampan.apiserver.printers import access, cluster, network, pods, storage, workloads
from sampan.apiserver.printers.custom_columns import custom_printer
from sampan.apiserver.printers.layout import CREATION_TEXT, NAME, Column, Printer
from sampan.core.fast_dataclass import dataclass

_INCLUDE = ("", "None", "Metadata", "Object")


@dataclass(frozen=True, slots=True)
class TableForm:
    """How a table was asked for. A watch sends the columns with its first event only."""

    include: str = ""  # includeObject of the query
    version: str = "v1"
    with_columns: bool = True


def columns(resource: Resource) -> list[Obj]:
    """The column definitions of a resource's table."""
    return [column.definition() for column in _printer(resource).columns]


def cells(resource: Resource, obj: Obj, now: float) -> list[Any]:
    return _printer(resource).cells(obj, now)


def table_of(
    resource: Resource,
    items: Iterable[Obj],
    now: float,
    form: "TableForm",
    metadata: Obj | None = None,
) -> Obj:
    """`metadata` is that of the list."""
    if form.include not in _INCLUDE:
        raise BadRequest(f"unrecognized includeObject value: {value_text(form.include)}")
    printer = _printer(resource)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata or {},
        "columnDefinitions": columns(resource) if form.with_columns else [],
        "rows": [_row(resource, printer, obj, now, form) for obj in items],
    }


def _row(resource: Resource, printer: Printer, obj: Obj, now: float, form: TableForm) -> Obj:
    row: Obj = {"cells": printer.cells(obj, now)}
    if resource.plural == "pods" and not resource.group:
        conditions = pods.row_conditions(obj)
        if conditions:
            row["conditions"] = conditions
    if form.include == "Object":
        row["object"] = obj
    elif form.include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": meta_of(obj),
        }
    return row


def _created_at(obj: Obj, now: float) -> list[Any]:
    return [name_of(obj), meta_of(obj).get("creationTimestamp")]


# Kinds without columns of their own show when they were made, not how old they are.
_DEFAULT = Printer((NAME, Column("Created At", "date", description=CREATION_TEXT)), _created_at)


def _printer(resource: Resource) -> Printer:
    custom = custom_of(resource)
    if custom is not None:
        return custom_printer(custom.columns)
    return _PRINTERS.get((resource.group, resource.plural), _DEFAULT)


_ADMISSION, _APPS, _BATCH = "admissionregistration.k8s.io", "apps", "batch"
_FLOW, _NETWORKING = "flowcontrol.apiserver.k8s.io", "networking.k8s.io"
_RBAC, _RESOURCE, _STORAGE = "rbac.authorization.k8s.io", "resource.k8s.io", "storage.k8s.io"

_PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "componentstatuses"): cluster.COMPONENT_STATUSES,
    ("", "configmaps"): cluster.CONFIG_MAPS,
    ("", "endpoints"): network.ENDPOINTS,
    ("", "events"): cluster.EVENTS,
    ("", "namespaces"): cluster.NAMESPACES,
    ("", "nodes"): cluster.NODES,
    ("", "persistentvolumeclaims"): storage.CLAIMS,
    ("", "persistentvolumes"): storage.VOLUMES,
    ("", "pods"): pods.PODS,
    ("", "podtemplates"): pods.POD_TEMPLATES,
    ("", "replicationcontrollers"): workloads.REPLICATION_CONTROLLERS,
    ("", "resourcequotas"): cluster.RESOURCE_QUOTAS,
    ("", "secrets"): cluster.SECRETS,
    ("", "serviceaccounts"): cluster.SERVICE_ACCOUNTS,
    ("", "services"): network.SERVICES,
    (_ADMISSION, "mutatingadmissionpolicies"): access.MUTATING_POLICIES,
    (_ADMISSION, "mutatingadmissionpolicybindings"): access.POLICY_BINDINGS,
    (_ADMISSION, "mutatingwebhookconfigurations"): access.WEBHOOKS,
    (_ADMISSION, "validatingwebhookconfigurations"): access.WEBHOOKS,
    (_ADMISSION, "validatingadmissionpolicies"): access.POLICIES,
    (_ADMISSION, "validatingadmissionpolicybindings"): access.POLICY_BINDINGS,
    ("apiregistration.k8s.io", "apiservices"): access.API_SERVICES,
    (_APPS, "controllerrevisions"): workloads.CONTROLLER_REVISIONS,
    (_APPS, "daemonsets"): workloads.DAEMON_SETS,
    (_APPS, "deployments"): workloads.DEPLOYMENTS,
    (_APPS, "replicasets"): workloads.REPLICA_SETS,
    (_APPS, "statefulsets"): workloads.STATEFUL_SETS,
    ("autoscaling", "horizontalpodautoscalers"): workloads.AUTOSCALERS,
    ("autoscaling", "scales"): workloads.SCALES,  # what the scale subresource gives
    (_BATCH, "cronjobs"): workloads.CRON_JOBS,
    (_BATCH, "jobs"): workloads.JOBS,
    ("certificates.k8s.io", "certificatesigningrequests"): access.SIGNING_REQUESTS,
    ("coordination.k8s.io", "leases"): cluster.LEASES,
    ("discovery.k8s.io", "endpointslices"): network.ENDPOINT_SLICES,
    ("events.k8s.io", "events"): cluster.EVENTS,
    (_FLOW, "flowschemas"): access.FLOW_SCHEMAS,
    (_FLOW, "prioritylevelconfigurations"): access.PRIORITY_LEVELS,
    (_NETWORKING, "ingressclasses"): network.INGRESS_CLASSES,
    (_NETWORKING, "ingresses"): network.INGRESSES,
    (_NETWORKING, "ipaddresses"): network.IP_ADDRESSES,
    (_NETWORKING, "networkpolicies"): network.NETWORK_POLICIES,
    (_NETWORKING, "servicecidrs"): network.SERVICE_CIDRS,
    ("node.k8s.io", "runtimeclasses"): cluster.RUNTIME_CLASSES,
    ("policy", "poddisruptionbudgets"): workloads.DISRUPTION_BUDGETS,
    (_RBAC, "clusterrolebindings"): access.BINDINGS,
    (_RBAC, "rolebindings"): access.BINDINGS,
    (_RESOURCE, "deviceclasses"): storage.JUST_AGE,
    (_RESOURCE, "resourceclaims"): storage.RESOURCE_CLAIMS,
    (_RESOURCE, "resourceclaimtemplates"): storage.JUST_AGE,
    (_RESOURCE, "resourceslices"): storage.RESOURCE_SLICES,
    ("scheduling.k8s.io", "priorityclasses"): cluster.PRIORITY_CLASSES,
    (_STORAGE, "csidrivers"): storage.CSI_DRIVERS,
    (_STORAGE, "csinodes"): storage.CSI_NODES,
    (_STORAGE, "csistoragecapacities"): storage.CSI_CAPACITIES,
    (_STORAGE, "storageclasses"): storage.STORAGE_CLASSES,
    (_STORAGE, "volumeattachments"): storage.ATTACHMENTS,
    (_STORAGE, "volumeattributesclasses"): storage.ATTRIBUTES_CLASSES,
}
