"""Disks that Kubernetes once mounted by itself, as the CSI volumes that they are by now. Pure.

Job: as csi-translation-lib: a PersistentVolume or a pod's volume of an in-tree type → the same as a
    PersistentVolume of its CSI driver; a plugin's name → its driver's.
Invariant: what is no in-tree disk is given back as it is.
"""

import urllib.parse
from collections.abc import Callable, Mapping, Sequence

from sampan.api.objects import Obj, annotations_of, labels_of, name_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern


class NotTranslated(Exception):
    """And why, in upstream's words."""


@dataclass(frozen=True, slots=True)
class InTree:
    plugin: str
    driver: str
    topology: str = ""  # the driver's key of a zone; empty: its volumes have none
    # NodeVolumeLimits and VolumeBinding leave two of them out.
    is_scheduled: bool = True


IN_TREE: Mapping[str, InTree] = {
    "awsElasticBlockStore": InTree(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
    ),
    "gcePersistentDisk": InTree(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"
    ),
    "azureDisk": InTree("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "azureFile": InTree("kubernetes.io/azure-file", "file.csi.azure.com", is_scheduled=False),
    "cinder": InTree(
        "kubernetes.io/cinder", "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
    ),
    "vsphereVolume": InTree(
        "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "topology.csi.vmware.com/zone",
        is_scheduled=False,
    ),
    "portworxVolume": InTree("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}  # fmt: skip

_REGION_OF_VSPHERE = "topology.csi.vmware.com/region"
_STABLE = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_BETA = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
_BETWEEN = "__"  # several zones in one label
_UNSPECIFIED = "UNSPECIFIED"
_EBS = lazy_pattern(r"vol-[^/]*")
_ACCOUNT = lazy_pattern(r"azure-storage-account-(.+)-secret")
_PORTWORX_SECRET = ("openstorage.io/auth-secret-name", "openstorage.io/auth-secret-namespace")
_RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group"


def source_of(holder: Obj) -> str:
    """The in-tree source that a PersistentVolume's spec or a pod's volume has; empty: none."""
    return next((field for field in IN_TREE if holder.get(field) is not None), "")


def driver_instead_of(plugin: str) -> str:
    """The CSI driver that stands for a plugin or provisioner; empty: none does."""
    return next((each.driver for each in IN_TREE.values() if each.plugin == plugin), "")


def translated_volume(volume: Obj) -> Obj:
    """Raises NotTranslated."""
    field = source_of(volume.get("spec") or {})
    if not field:
        return volume
    spec: Obj = {key: value for key, value in volume["spec"].items() if key != field}
    source = volume["spec"][field]
    try:
        if field == "azureFile":
            spec["csi"] = _azure_file_of(volume, source)
        elif field == "gcePersistentDisk":
            spec["csi"] = _gce_disk(source, _gce_place(labels_of(volume)))
            if spec.get("accessModes"):
                spec["accessModes"] = _writers_or_readers(spec["accessModes"])
        else:
            spec["csi"] = _SOURCES[field](source)
        if field == "portworxVolume":
            spec["csi"] |= _portworx_secrets(annotations_of(volume))
    except NotTranslated as error:
        raise NotTranslated(f"failed to translate in-tree pv to CSI: {error}") from error
    if affinity := _affinity(spec.get("nodeAffinity"), labels_of(volume), field):
        spec["nodeAffinity"] = affinity
    return {**volume, "spec": spec}


def translated_inline(volume: Obj, namespace: str) -> Obj:
    """A pod's own volume as a PersistentVolume that is nowhere stored. Raises NotTranslated."""
    field = source_of(volume)
    source = volume[field]
    try:
        if field == "azureFile":
            csi = _azure_file(source, "", volume.get("name", ""), namespace or "default")
        else:
            csi = _SOURCES[field](source)
    except NotTranslated as error:
        raise NotTranslated(f"failed to translate in-tree pv to CSI: {error}") from error
    name = f"{csi['driver']}-{source.get('pdName') or csi['volumeHandle']}"
    if field in ("azureDisk", "azureFile"):
        name = csi["volumeHandle"]
    read_only = field in ("gcePersistentDisk", "portworxVolume") and source.get("readOnly")
    mode = "ReadOnlyMany" if read_only else "ReadWriteOnce"
    if field == "azureFile":
        mode = "ReadWriteMany"
    spec = {"accessModes": [mode], "csi": csi, "volumeMode": "Filesystem"}
    return {"metadata": {"name": name}, "spec": spec}


# The sources, one by one.


def _source(field: str, handle: str, source: Obj, attributes: Mapping[str, str]) -> Obj:
    found: Obj = {"driver": IN_TREE[field].driver, "volumeHandle": handle}
    if source.get("readOnly"):
        found["readOnly"] = True
    if source.get("fsType"):
        found["fsType"] = source["fsType"]
    if attributes:
        found["volumeAttributes"] = dict(attributes)
    return found


def _ebs_disk(source: Obj) -> Obj:
    handle = given = str(source.get("volumeID") or "")
    if given.startswith("aws://"):
        handle = urllib.parse.unquote(urllib.parse.urlsplit(given).path).strip("/")
        if _EBS.fullmatch(handle) is None:
            why = f"Invalid format for AWS volume ({given})"
            raise NotTranslated(f"failed to translate Kubernetes ID to EBS Volume ID {why}")
    partition = {"partition": str(source.get("partition") or 0)}
    return _source("awsElasticBlockStore", handle, source, partition)


def _gce_disk(source: Obj, place: str = f"zones/{_UNSPECIFIED}") -> Obj:
    handle = f"projects/{_UNSPECIFIED}/{place}/disks/{source.get('pdName') or ''}"
    partition = str(source.get("partition") or "")
    return _source("gcePersistentDisk", handle, source, {"partition": partition})


def _gce_place(labels: Mapping[str, str]) -> str:
    zones = (labels.get(_BETA[0]) or labels.get(_STABLE[0]) or "").split(_BETWEEN)
    if len(zones) == 1:
        return f"zones/{zones[0] or _UNSPECIFIED}"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise NotTranslated(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise NotTranslated(
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            f"map[{found}]"
        )
    return f"regions/{regions.pop()}"


def _writers_or_readers(modes: Sequence[str]) -> list[str]:
    """As upstream: many writers were never told from one."""
    return ["ReadOnlyMany"] if set(modes) == {"ReadOnlyMany"} else ["ReadWriteOnce"]


def _azure_disk(source: Obj) -> Obj:
    kind = source.get("kind")
    if kind is not None and str(kind).lower() != "managed":
        raise NotTranslated(f"kind({kind}) is not supported in csi migration")
    attributes = {"kind": "Managed"}
    if source.get("cachingMode"):
        attributes["cachingmode"] = source["cachingMode"]
    if source.get("fsType") is not None:
        attributes["fstype"] = source["fsType"]
    return _source("azureDisk", source.get("diskURI") or "", source, attributes)


def _azure_file(source: Obj, group: str, name: str, namespace: str) -> Obj:
    secret, share = source.get("secretName") or "", source.get("shareName") or ""
    found = _ACCOUNT.search(secret)
    account = found[1] if found is not None else secret
    handle = "#".join((group, account, share, name, namespace))
    csi = _source("azureFile", handle, {**source, "fsType": None}, {"sharename": share})
    return {**csi, "nodeStageSecretRef": {"name": secret, "namespace": namespace}}


def _azure_file_of(volume: Obj, source: Obj) -> Obj:
    namespace = source.get("secretNamespace")
    if namespace is None:
        namespace = (volume["spec"].get("claimRef") or {}).get("namespace")
    if not namespace:
        why = "could not find a secret namespace in PersistentVolumeSource or ClaimRef"
        raise NotTranslated(why)
    group = annotations_of(volume).get(_RESOURCE_GROUP) or ""
    return _azure_file(source, group, name_of(volume), namespace)


def _cinder(source: Obj) -> Obj:
    return _source("cinder", source.get("volumeID") or "", source, {})


def _vsphere(source: Obj) -> Obj:
    policy = source.get("storagePolicyName")
    attributes = {"storagepolicyname": policy} if policy else {}
    return _source("vsphereVolume", source.get("volumePath") or "", source, attributes)


def _portworx(source: Obj) -> Obj:
    # As upstream: what is written of readers is in the access modes alone.
    return _source("portworxVolume", source.get("volumeID") or "", {**source, "readOnly": None}, {})


def _portworx_secrets(annotations: Mapping[str, str]) -> Obj:
    name, namespace = (annotations.get(key) for key in _PORTWORX_SECRET)
    if name is None or namespace is None:
        return {}
    secret = {"name": name, "namespace": namespace}
    kinds = ("controllerPublish", "nodeStage", "nodePublish", "controllerExpand", "nodeExpand")
    return {f"{kind}SecretRef": secret for kind in kinds}


_SOURCES: Mapping[str, Callable[[Obj], Obj]] = {
    "awsElasticBlockStore": _ebs_disk,
    "gcePersistentDisk": _gce_disk,
    "azureDisk": _azure_disk,
    "cinder": _cinder,
    "vsphereVolume": _vsphere,
    "portworxVolume": _portworx,
}


# Where it is.


def _affinity(affinity: Obj | None, labels: Mapping[str, str], field: str) -> Obj | None:
    """The nodes that reach it, in the driver's own keys."""
    key = IN_TREE[field].topology
    if not key:
        return affinity
    zone, region = _labels_in_use(affinity, labels)
    if field == "vsphereVolume":
        found = _moved(affinity, zone, key, [labels.get(zone) or ""])
        return _moved(found, region, _REGION_OF_VSPHERE, [labels.get(region) or ""])
    found = _moved(affinity, zone, key, labels.get(zone, "").split(_BETWEEN))
    return _moved(found, region, _STABLE[1], ()) if region == _BETA[1] else found


def _labels_in_use(affinity: Obj | None, labels: Mapping[str, str]) -> tuple[str, str]:
    for pair in (_STABLE, _BETA):
        if any(item.get("key") == pair[0] for term in _terms(affinity) for item in _of(term)):
            return pair
    return next((pair for pair in (_STABLE, _BETA) if pair[0] in labels), _STABLE)


def _moved(affinity: Obj | None, old: str, new: str, labelled: Sequence[str]) -> Obj | None:
    """What is asked of the old key is asked of the new one; where nothing is, the label says it."""
    terms = _terms(affinity)
    if any(item.get("key") == old and item.get("values") for term in terms for item in _of(term)):
        renamed = [
            {
                **term,
                "matchExpressions": [
                    {**item, "key": new} if item.get("key") == old else item for item in _of(term)
                ],
            }
            for term in terms
        ]
        return _with_terms(affinity, renamed)
    values = sorted({value.strip() for value in labelled} - {""})
    if not values:
        return affinity
    asked = {"key": new, "operator": "In", "values": values}
    added = [{**term, "matchExpressions": [*_of(term), asked]} for term in terms or [{}]]
    return _with_terms(affinity, added)


def _with_terms(affinity: Obj | None, terms: Sequence[Obj]) -> Obj:
    known = affinity or {}
    required = {**(known.get("required") or {}), "nodeSelectorTerms": list(terms)}
    return {**known, "required": required}


def _terms(affinity: Obj | None) -> Sequence[Obj]:
    return ((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or ()


def _of(term: Obj) -> Sequence[Obj]:
    return term.get("matchExpressions") or ()
