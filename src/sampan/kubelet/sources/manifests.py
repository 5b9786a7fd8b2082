"""Manifests: from the bytes of a file or of a URL to static pods.

Job: decode, decorate as upstream does, fill in defaults, validate. Pure.
Invariant: the same content from the same place on the same node has the same uid, and any change of
    it has another one.
Invariant: a pod that comes out of here would be accepted by the API.
"""

import hashlib
from typing import Any

import orjson

from sampan.api.defaults import apply_defaults
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of, meta_of
from sampan.api.resources import PODS
from sampan.api.rules import pods
from sampan.api.rules.pods import HASH_ANNOTATION, SOURCE_ANNOTATION
from sampan.api.schema.published import Schema
from sampan.api.validation import validate_create

FILE = "file"
HTTP = "http"
_NEVER_EVICTED: Obj = {"operator": "Exists", "effect": "NoExecute"}
_LISTS = ("PodList", "List")


class BadManifest(Exception):
    """One sentence: what is wrong with it."""


def one_pod(data: bytes, schema: Schema, *, source: str, place: str, node_name: str) -> Obj:
    """The pod of a manifest. `place`: the file's path or the URL."""
    return _static_pod(_parse(data), schema, source=source, place=place, node_name=node_name)


def all_pods(data: bytes, schema: Schema, *, source: str, place: str, node_name: str) -> list[Obj]:
    """The pods of a Pod or of a PodList."""
    value = _parse(data)
    if not isinstance(value, dict) or value.get("kind") not in _LISTS:
        return [_static_pod(value, schema, source=source, place=place, node_name=node_name)]
    items = value.get("items") or []
    if not isinstance(items, list):
        raise BadManifest("items is not a list")
    return [
        _static_pod(
            {"apiVersion": "v1", "kind": "Pod", **item} if isinstance(item, dict) else item,
            schema, source=source, place=place, node_name=node_name,
        )
        for item in items
    ]  # fmt: skip


def _parse(data: bytes) -> Any:
    if not data.strip():
        raise BadManifest("it is empty")
    try:
        if data.lstrip()[:1] == b"{":
            return orjson.loads(data)
        from sampan.api import strict_yaml  # most nodes have no static pods

        return strict_yaml.parse_yaml(data).value
    except (ValueError, UnicodeDecodeError) as error:
        raise BadManifest(f"couldn't parse as pod: {error}") from error


def _static_pod(value: Any, schema: Schema, *, source: str, place: str, node_name: str) -> Obj:
    if not isinstance(value, dict) or value.get("kind") != "Pod":
        kind = value.get("kind") if isinstance(value, dict) else type(value).__name__
        raise BadManifest(f"couldn't parse as pod: it is no Pod but {kind or 'of no kind'}")
    if value.get("apiVersion") != "v1":
        raise BadManifest(f"couldn't parse as pod: no Pod in version {value.get('apiVersion')!r}")
    try:
        pod = schema.check("v1", "Pod", value).obj
    except ApiError as error:
        raise BadManifest(f"couldn't parse as pod: {error}") from error
    pod = with_node_identity(pod, source=source, place=place, node_name=node_name)
    apply_defaults(PODS, pod)
    problems = validate_create(PODS, pod)
    if problems:
        raise BadManifest(f"invalid pod: {', '.join(map(str, problems))}")
    _refuse_references(pod)
    return pod


def with_node_identity(pod: Obj, *, source: str, place: str, node_name: str) -> Obj:
    """As upstream's applyDefaults: who it is on this node, and that it came from here."""
    uid = str(meta_of(pod).get("uid") or "") or _uid(pod, source, place, node_name)
    new: Obj = copy_of(pod)
    new["apiVersion"], new["kind"] = "v1", "Pod"
    meta = new.setdefault("metadata", {})
    meta["uid"] = uid
    meta["name"] = f"{meta.get('name') or ''}-{node_name.lower()}"
    meta["namespace"] = meta.get("namespace") or "default"
    notes = {**(meta.get("annotations") or {}), HASH_ANNOTATION: uid, SOURCE_ANNOTATION: source}
    meta["annotations"] = notes
    spec = new.setdefault("spec", {})
    spec["nodeName"] = node_name
    if source == FILE:
        # What keeps a node going is not to be evicted when the node has problems.
        tolerations = spec.setdefault("tolerations", [])
        if _NEVER_EVICTED not in tolerations:
            tolerations.append(dict(_NEVER_EVICTED))
    new["status"] = {"phase": "Pending"}
    return new


def _uid(pod: Obj, source: str, place: str, node_name: str) -> str:
    where = f"host:{node_name}file:{place}" if source == FILE else f"url:{place}"
    content = orjson.dumps(pod, option=orjson.OPT_SORT_KEYS)
    return hashlib.md5(where.encode() + content, usedforsecurity=False).hexdigest()


def _refuse_references(pod: Obj) -> None:
    """A static pod has to start without an API."""
    spec = pod["spec"]
    named = {
        "serviceaccounts": spec.get("serviceAccountName"),
        "secrets": pods.secret_names(pod),
        "configmaps": pods.config_map_names(pod),
        "persistentvolumeclaims": pods.claim_names(pod),
        "resourceclaims": spec.get("resourceClaims"),
    }
    for resource, found in named.items():
        if found:
            raise BadManifest(f"static pods may not reference {resource}")
