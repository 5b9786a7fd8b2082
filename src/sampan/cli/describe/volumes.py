"""Volumes of pods and persistent volumes, described.

Job: each kind of volume source as lines.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.cli.describe.writer import Writer

_PLAIN: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "emptyDir": (
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        (("Medium", "medium"), ("SizeLimit", "sizeLimit")),
    ),
    "hostPath": (
        "HostPath (bare host directory volume)",
        (("Path", "path"), ("HostPathType", "hostPathType")),
    ),
    "configMap": ("ConfigMap (a volume populated by a ConfigMap)", (("Name", "name"), ("Optional", "optional?"))),
    "secret": (
        "Secret (a volume populated by a Secret)",
        (("SecretName", "secretName"), ("Optional", "optional?")),
    ),
    "persistentVolumeClaim": (
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        (("ClaimName", "claimName"), ("ReadOnly", "readOnly?")),
    ),
    "nfs": (
        "NFS (an NFS mount that lasts the lifetime of a pod)",
        (("Server", "server"), ("Path", "path"), ("ReadOnly", "readOnly?")),
    ),
    "local": (
        "LocalVolume (a persistent volume backed by local storage on a node)",
        (("Path", "path"),),
    ),
    "csi": (
        "CSI (a Container Storage Interface (CSI) volume source)",
        (("Driver", "driver"), ("FSType", "fsType"), ("VolumeHandle", "volumeHandle"), ("ReadOnly", "readOnly?")),
    ),
    "image": (
        "Image (a container image or OCI artifact)",
        (("Reference", "reference"), ("PullPolicy", "pullPolicy")),
    ),
}  # fmt: skip


def volume_lines(writer: Writer, volumes: list[Obj] | None, space: str) -> None:
    if not volumes:
        writer.line(0, f"{space}Volumes:", "<none>")
        return
    writer.line(0, f"{space}Volumes:")
    for volume in volumes:
        writer.line(1, f"{' ' if space else ''}{volume['name']}:")
        source_lines(writer, volume, 2)


def source_lines(writer: Writer, volume: Obj, level: int) -> None:
    for field, (title, rows) in _PLAIN.items():
        if field in volume:
            writer.line(level, "Type:", title)
            for name, key in rows:
                writer.line(level, f"{name}:", _cell(volume[field] or {}, key))
            return
    if "projected" in volume:
        _project(writer, volume["projected"] or {}, level)
    elif "downwardAPI" in volume:
        _write_downward(writer, volume["downwardAPI"] or {}, level)
    elif "ephemeral" in volume:
        writer.line(
            level, "Type:", "EphemeralVolume (an inline specification for a volume that gets "
            "created and deleted with the pod)",
        )  # fmt: skip
    else:
        kind = next((name for name in volume if name != "name"), "unknown")
        writer.line(level, kind)


def _write_downward(writer: Writer, source: Obj, level: int) -> None:
    writer.line(level, "Type:", "DownwardAPI (a volume populated by information about the pod)")
    writer.line(level, "Items:")
    for item in source.get("items") or []:
        reference = item.get("fieldRef") or item.get("resourceFieldRef") or {}
        path = reference.get("fieldPath") or reference.get("resource")
        writer.line(level + 1, f"{path} -> {item['path']}")


def _cell(source: Obj, key: str) -> Any:
    if key.endswith("?"):
        return "true" if source.get(key[:-1]) else "false"
    value = source.get(key)
    if key == "hostPathType":
        return "<none>" if source.get("type") is None else source["type"]
    if key == "sizeLimit":
        return value if value else "<unset>"
    return "" if value is None else value


def _project(writer: Writer, projected: Obj, level: int) -> None:
    writer.line(
        level, "Type:", "Projected (a volume that contains injected data from multiple sources)"
    )
    for source in projected.get("sources") or []:
        if source.get("secret"):
            writer.line(level, "SecretName:", source["secret"].get("name"))
            writer.line(level, "Optional:", _cell(source["secret"], "optional?"))
        elif source.get("downwardAPI"):
            writer.line(level, "DownwardAPI:", "true")
        elif source.get("configMap"):
            writer.line(level, "ConfigMapName:", source["configMap"].get("name"))
            writer.line(level, "Optional:", _cell(source["configMap"], "optional?"))
        elif source.get("serviceAccountToken"):
            seconds = source["serviceAccountToken"].get("expirationSeconds")
            writer.line(level, "TokenExpirationSeconds:", seconds)
