"""What OpenAPI v3 says that a field is when it is not given.

Job: add `default` to a published definition, as openapi-gen does: a value that Go writes in any
    case has its zero, a struct is empty, and some fields are marked with a default. Pure.
Invariant: what may be absent in Go (pointers, lists, maps, and values that are left out when they
    are empty) has a default only where it is marked.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.message_table import always_written, load_messages

_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}
_CORE, _RESOURCE = "io.k8s.api.core.v1", "io.k8s.api.resource"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"  # whatever it is, it is not a struct
_NAMED = {"name": ""}  # a reference to something of the namespace
_PERSISTENT = ("", "Persistent")
_RBD = {"keyring": "/etc/ceph/keyring", "user": "admin", "pool": "rbd"}
_MARKED: dict[str, Obj] = {
    "io.k8s.api.apps.v1.StatefulSetOrdinals": {"start": 0},
    "io.k8s.api.autoscaling.v1.ScaleSpec": {"replicas": 0},
    "io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec": {"maxExpirationSeconds": 86400},
    f"{_CORE}.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False
    },
    f"{_CORE}.ConfigMapEnvSource": _NAMED,
    f"{_CORE}.ConfigMapKeySelector": _NAMED,
    f"{_CORE}.ConfigMapProjection": _NAMED,
    f"{_CORE}.ConfigMapVolumeSource": _NAMED,
    f"{_CORE}.ContainerPort": {"protocol": "TCP"},
    f"{_CORE}.FileKeySelector": {"optional": False},
    f"{_CORE}.LocalObjectReference": _NAMED,
    f"{_CORE}.ReplicationControllerSpec": {"minReadySeconds": 0, "replicas": 1},
    f"{_CORE}.SecretEnvSource": _NAMED,
    f"{_CORE}.SecretKeySelector": _NAMED,
    f"{_CORE}.SecretProjection": _NAMED,
    f"{_CORE}.ServicePort": {"protocol": "TCP"},
    **{f"{_CORE}.ISCSI{one}VolumeSource": {"iscsiInterface": "default"} for one in _PERSISTENT},
    **{f"{_CORE}.RBD{one}VolumeSource": _RBD for one in _PERSISTENT},
    **{
        f"{_CORE}.ScaleIO{one}VolumeSource": {"fsType": "xfs", "storageMode": "ThinProvisioned"}
        for one in _PERSISTENT
    },
    **{
        f"{_RESOURCE}.{version}.DeviceToleration": {"operator": "Equal"}
        for version in ("v1", "v1beta1", "v1beta2")
    },
}  # fmt: skip
# A pointer that Go writes in any case.
_NULL_IS_WRITTEN = {("io.k8s.api.networking.v1.HTTPIngressPath", "pathType")}
Definition = Callable[[str], Obj]


def with_defaults(definition: Definition, name: str, published: Obj) -> None:
    """Adds to `published`, the definition of that name, what its fields are by default."""
    raw = definition(name)
    written = _written(name, raw)
    marked = _MARKED.get(name, {})
    for field, part in raw.get("properties", {}).items():
        shown = published["properties"][field]
        if field in marked:
            shown["default"] = marked[field]
        elif field in written:
            _add_zero(definition, part, shown)
        _add_to_elements(definition, part, shown)


def _written(name: str, raw: Obj) -> set[str]:
    messages = load_messages()
    if name in messages:
        written = set(always_written(messages, name))
        return {field for field in written if (name, field) not in _NULL_IS_WRITTEN}
    required = set(raw.get("required", ()))  # lists, and what discovery is made of
    return required | {"metadata"} if "items" in required else required


def _add_zero(definition: Definition, part: Obj, shown: Obj) -> None:
    reference = part.get("$ref")
    if reference is not None:
        if definition(reference).get("type") == "object" and reference != _RAW:
            shown["default"] = {}
    elif part.get("format") != "byte" and part.get("type") in _ZEROS:
        shown["default"] = _ZEROS[part["type"]]


def _add_to_elements(definition: Definition, part: Obj, shown: Obj) -> None:
    for key in ("items", "additionalProperties"):
        if key in part:
            _add_zero(definition, part[key], shown[key])
            _add_to_elements(definition, part[key], shown[key])
