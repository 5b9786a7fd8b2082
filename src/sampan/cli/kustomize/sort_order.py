"""In which order the objects of a kustomization come: what others need first."""

from collections.abc import Sequence

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize.resource import Resource

FIRST = (
    "Namespace", "ResourceQuota", "StorageClass", "CustomResourceDefinition", "ServiceAccount",
    "PodSecurityPolicy", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ConfigMap",
    "Secret", "Endpoints", "Service", "LimitRange", "PriorityClass", "PersistentVolume",
    "PersistentVolumeClaim", "Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget",
)  # fmt: skip
LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def ordered(resources: Sequence[Resource], options: Obj | None) -> list[Resource]:
    """By `sortOptions`. Raises CliError."""
    order = "legacy" if options is None else options.get("order") or ""
    if order == "fifo":
        return list(resources)
    if order != "legacy":
        raise CliError("the field 'sortOptions.order' must be one of [fifo, legacy]")
    lists = (options or {}).get("legacySortOptions") or {}
    first, last = lists.get("orderFirst") or (), lists.get("orderLast") or ()
    if not lists:
        first, last = FIRST, LAST
    ranks = {kind: number - len(first) for number, kind in enumerate(first)}
    ranks |= {kind: number + 1 for number, kind in enumerate(last)}

    def key(resource: Resource) -> tuple[int, str, str, str]:
        gvk = resource.gvk
        words = "_".join((gvk.group or "~G", gvk.version or "~V", gvk.kind or "~K"))
        return (
            ranks.get(gvk.kind, 0), words, resource.namespace or "~X", resource.name or "~N",
        )  # fmt: skip

    return sorted(resources, key=key)
