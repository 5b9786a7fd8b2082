"""Kinds of snapshot.storage.k8s.io/v1, and the definitions of them that sampan brings.

Job: rows for the client; CustomResourceDefinitions for a cluster that has none yet.
"""

from sampan.api.objects import Obj
from sampan.api.resources import STATUS, Resource

GROUP, VERSION = "snapshot.storage.k8s.io", "v1"
SNAPSHOTS = Resource(
    GROUP, VERSION, "VolumeSnapshot", "volumesnapshots", short_names=("vs",), subresources=(STATUS,)
)
CONTENTS = Resource(
    GROUP, VERSION, "VolumeSnapshotContent", "volumesnapshotcontents", namespaced=False,
    short_names=("vsc", "vscs"), subresources=(STATUS,),
)  # fmt: skip
CLASSES = Resource(
    GROUP, VERSION, "VolumeSnapshotClass", "volumesnapshotclasses", namespaced=False,
    short_names=("vsclass", "vsclasses"),
)  # fmt: skip
_TEXT, _TRUTH, _NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
_MAP = {"type": "object", "additionalProperties": _TEXT}
_TIME = {"type": "string", "format": "date-time"}
_SIZE = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
_ERROR = {"type": "object", "properties": {"message": _TEXT, "time": _TIME}}


def _object(required: tuple[str, ...] = (), **properties: Obj) -> Obj:
    found: Obj = {"type": "object", "properties": properties}
    return {**found, "required": list(required)} if required else found


_REFERENCE = _object(apiVersion=_TEXT, fieldPath=_TEXT, kind=_TEXT, name=_TEXT, namespace=_TEXT,
                     resourceVersion=_TEXT, uid=_TEXT)  # fmt: skip


def _column(name: str, kind: str, path: str) -> Obj:
    return {"name": name, "type": kind, "jsonPath": path}


_AGE = _column("Age", "date", ".metadata.creationTimestamp")
_ONE_SOURCE = "exactly one of {} and {} must be set"


def _either(one: str, other: str) -> list[Obj]:
    rule = f"has(self.{one}) != has(self.{other})"
    return [{"rule": rule, "message": _ONE_SOURCE.format(one, other)}]


def definitions() -> list[Obj]:
    return [_snapshots(), _contents(), _classes()]


def _snapshots() -> Obj:
    source = _object(persistentVolumeClaimName=_TEXT, volumeSnapshotContentName=_TEXT)
    source["x-kubernetes-validations"] = _either(
        "persistentVolumeClaimName", "volumeSnapshotContentName"
    )
    spec = _object(("source",), source=source, volumeSnapshotClassName=_TEXT)
    status = _object(
        boundVolumeSnapshotContentName=_TEXT, creationTime=_TIME, error=_ERROR, readyToUse=_TRUTH,
        restoreSize=_SIZE, volumeGroupSnapshotName=_TEXT,
    )  # fmt: skip
    return _definition(
        SNAPSHOTS, _object(("spec",), spec=spec, status=status),
        _column("ReadyToUse", "boolean", ".status.readyToUse"),
        _column("SourcePVC", "string", ".spec.source.persistentVolumeClaimName"),
        _column("SourceSnapshotContent", "string", ".spec.source.volumeSnapshotContentName"),
        _column("RestoreSize", "string", ".status.restoreSize"),
        _column("SnapshotClass", "string", ".spec.volumeSnapshotClassName"),
        _column("SnapshotContent", "string", ".status.boundVolumeSnapshotContentName"),
        _column("CreationTime", "date", ".status.creationTime"),
        _AGE,
    )  # fmt: skip


def _contents() -> Obj:
    source = _object(snapshotHandle=_TEXT, volumeHandle=_TEXT)
    source["x-kubernetes-validations"] = _either("snapshotHandle", "volumeHandle")
    spec = _object(
        ("deletionPolicy", "driver", "source", "volumeSnapshotRef"),
        deletionPolicy={"type": "string", "enum": ["Delete", "Retain"]},
        driver=_TEXT, source=source, sourceVolumeMode=_TEXT, volumeSnapshotClassName=_TEXT,
        volumeSnapshotRef=_REFERENCE,
    )  # fmt: skip
    status = _object(
        creationTime={**_NUMBER, "format": "int64"}, error=_ERROR, readyToUse=_TRUTH,
        restoreSize={**_NUMBER, "format": "int64", "minimum": 0}, snapshotHandle=_TEXT,
        volumeGroupSnapshotHandle=_TEXT,
    )  # fmt: skip
    return _definition(
        CONTENTS, _object(("spec",), spec=spec, status=status),
        _column("ReadyToUse", "boolean", ".status.readyToUse"),
        _column("RestoreSize", "integer", ".status.restoreSize"),
        _column("DeletionPolicy", "string", ".spec.deletionPolicy"),
        _column("Driver", "string", ".spec.driver"),
        _column("VolumeSnapshotClass", "string", ".spec.volumeSnapshotClassName"),
        _column("VolumeSnapshot", "string", ".spec.volumeSnapshotRef.name"),
        _column("VolumeSnapshotNamespace", "string", ".spec.volumeSnapshotRef.namespace"),
        _AGE,
    )  # fmt: skip


def _classes() -> Obj:
    schema = _object(
        ("deletionPolicy", "driver"),
        deletionPolicy={"type": "string", "enum": ["Delete", "Retain"]}, driver=_TEXT,
        parameters=_MAP,
    )  # fmt: skip
    return _definition(
        CLASSES, schema,
        _column("Driver", "string", ".driver"),
        _column("DeletionPolicy", "string", ".deletionPolicy"),
        _AGE,
    )  # fmt: skip


def _definition(row: Resource, schema: Obj, *columns: Obj) -> Obj:
    schema["properties"] |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{row.plural}.{GROUP}",
                     "annotations": {"api-approved.kubernetes.io": "unapproved, made by sampan"}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if row.namespaced else "Cluster",
            "names": {"kind": row.kind, "listKind": f"{row.kind}List", "plural": row.plural,
                      "singular": row.kind.lower(), "shortNames": list(row.short_names)},
            "versions": [{
                "name": VERSION, "served": True, "storage": True,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}} if row.subresources else {},
                "additionalPrinterColumns": list(columns),
            }],
        },
    }  # fmt: skip
