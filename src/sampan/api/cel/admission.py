"""CEL environment of admission: its variables and their types.

Job: the variables of policies and match conditions, and the shapes of request and namespace.
Invariant: environments are made once for each combination, when the first expression needs it.
"""

import functools
from collections.abc import Mapping

from sampan.api.cel.catalog import KUBERNETES, KUBERNETES_PATCHES
from sampan.api.cel.language.environment import Environment, Objects
from sampan.api.cel.language.types import (
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
)
from sampan.api.cel.libraries.authorizer import AUTHORIZER, RESOURCE

_KIND, _RESOURCE, _USER, _REQUEST = (
    object_type(f"kubernetes.{item}")
    for item in ("GroupVersionKind", "GroupVersionResource", "UserInfo", "AdmissionRequest")
)
_NAMESPACE, _METADATA, _SPEC, _STATUS, _CONDITION = (
    object_type(f"kubernetes.Namespace{item}")
    for item in ("", "Metadata", "Spec", "Status", "Condition")
)
_STRINGS = list_of(STRING)
_TEXTS = map_of(STRING, STRING)
SHAPES: dict[str, dict[str, Type]] = {
    _KIND.name: dict.fromkeys(("group", "version", "kind"), STRING),
    _RESOURCE.name: dict.fromkeys(("group", "version", "resource"), STRING),
    _USER.name: {
        "username": STRING,
        "uid": STRING,
        "groups": _STRINGS,
        "extra": map_of(STRING, _STRINGS),
    },
    _REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    _CONDITION.name: {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
    _STATUS.name: {"conditions": list_of(_CONDITION), "phase": STRING},
    _SPEC.name: {"finalizers": _STRINGS},
    _METADATA.name: {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "creationTimestamp": TIMESTAMP,
        "deletionTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "generation": INT,
        "finalizers": _STRINGS,
    },
    _NAMESPACE.name: {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS},
}
VARIABLES = object_type("kubernetes.variables")
JSON_PATCH = object_type("JSONPatch")
PATCH_OBJECT = object_type("Object")
_OPERATION: dict[str, Type] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


class _AnyField(dict[str, Type]):
    """Every field there could be, of any type: `Object.spec{…}` is checked when it is applied."""

    def __contains__(self, _key: object) -> bool:
        return True

    def __getitem__(self, _key: str) -> Type:
        return DYN

    def get(self, _key: str, _default: object = None) -> Type:
        return DYN


class Shapes:
    """The object types of admission; those of a policy's variables and of its kinds beside them."""

    def __init__(
        self,
        variables: Mapping[str, Type] | None = None,
        others: Objects | None = None,
        patches: bool = False,
    ) -> None:
        self._variables, self._others, self._patches = variables, others, patches

    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        if name == VARIABLES.name:
            return self._variables
        if self._patches and name == JSON_PATCH.name:
            return _OPERATION
        if self._patches and (name == PATCH_OBJECT.name or name.startswith("Object.")):
            return _AnyField()
        found = SHAPES.get(name)
        if found is None and self._others is not None:
            return self._others.fields_of(name)
        return found


@functools.cache
def environment(params: bool, authorizer: bool, patches: bool = False) -> Environment:
    """Objects are of any type: what they are is known when they come."""
    return _base(patches).extended(variables_of(params, authorizer), Shapes(patches=patches))


@functools.cache
def _base(patches: bool) -> Environment:
    return Environment({}, KUBERNETES_PATCHES if patches else KUBERNETES)


def variables_of(
    params: bool, authorizer: bool, obj: Type = DYN, param: Type = DYN
) -> dict[str, Type]:
    found = {"object": obj, "oldObject": obj, "namespaceObject": _NAMESPACE, "request": _REQUEST}
    if params:
        found["params"] = param
    if authorizer:
        found |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE}
    return found
