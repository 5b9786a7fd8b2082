"""Versions of built-in kinds that are served no more, and still understood in patches.

Job: know them, and what their defaults add to an object that is there. Pure.

As upstream, which decodes what a merge or JSON patch has made by the version that it names then.
"""

from sampan.api.objects import Obj, meta_of

_PAST = {
    "apps/v1beta1": ("Deployment", "StatefulSet"),
    "apps/v1beta2": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1beta1": ("CronJob",),
    "extensions/v1beta1": ("DaemonSet", "Deployment", "NetworkPolicy", "ReplicaSet"),
    "policy/v1beta1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1beta1": (
        "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
    ),
    "scheduling.k8s.io/v1beta1": ("PriorityClass",),
    "storage.k8s.io/v1beta1": ("StorageClass", "VolumeAttachment"),
}  # fmt: skip
_LABELLED = ("apps/v1beta1", "extensions/v1beta1")  # their workloads have the template's labels


def is_past_version(api_version: str, kind: str) -> bool:
    return kind in _PAST.get(api_version, ())


def with_past_defaults(api_version: str, obj: Obj) -> Obj:
    template = (obj.get("spec") or {}).get("template")
    meta = meta_of(obj)
    if api_version not in _LABELLED or not isinstance(template, dict) or meta.get("labels"):
        return obj
    labels = meta_of(template).get("labels")
    return {**obj, "metadata": {**meta, "labels": labels}} if labels else obj
