"""Which API objects the volumes of a pod need. Pure.

Job: config maps and secrets by kind and name, and the names of claims.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj, name_of, spec_of
from sampan.kubelet.container_spec.generate import Reference

CONFIG_MAP, SECRET, CLAIM = "ConfigMap", "Secret", "PersistentVolumeClaim"


def kind_of(volume: Obj) -> str:
    """`configMap`, `emptyDir` … : the one field beside the name."""
    return next((key for key in volume if key != "name" and volume[key] is not None), "emptyDir")


def volumes_of(pod: Obj) -> list[Obj]:
    return spec_of(pod).get("volumes") or []


def claims_of(pod: Obj) -> Iterator[tuple[str, str]]:
    """(volume name, claim name)."""
    for volume in volumes_of(pod):
        if volume.get("persistentVolumeClaim"):
            yield volume["name"], volume["persistentVolumeClaim"].get("claimName", "")
        elif volume.get("ephemeral"):
            yield volume["name"], ephemeral_claim(pod, volume["name"])


def ephemeral_claim(pod: Obj, volume: str) -> str:
    """The name of the claim that is made for an ephemeral volume."""
    return f"{name_of(pod)}-{volume}"


def volume_references(pod: Obj) -> tuple[Reference, ...]:
    """Each once, in the order of the spec."""
    found = dict.fromkeys(ref for volume in volumes_of(pod) for ref in _of_volume(volume))
    return tuple(found)


def _of_volume(volume: Obj) -> Iterator[Reference]:
    if volume.get("configMap"):
        yield Reference(CONFIG_MAP, volume["configMap"].get("name", ""))
    elif volume.get("secret"):
        yield Reference(SECRET, volume["secret"].get("secretName", ""))
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("configMap"):
            yield Reference(CONFIG_MAP, source["configMap"].get("name", ""))
        elif source.get("secret"):
            yield Reference(SECRET, source["secret"].get("name", ""))
