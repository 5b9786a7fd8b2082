"""The `paths` of the OpenAPI documents, versions 2 and 3.

Job: operations → path items. Pure.
Invariant: what all operations of a path take is said once, beside them; in version 2 what many
    paths take is said once in the document.
"""

import base64
from collections.abc import Callable, Iterable

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.openapi.parameters import Parameter
from sampan.apiserver.openapi.paths import TEXT, Operation

NameOf = Callable[[str], str | None]  # "apiVersion Kind" → the name of its definition
_V2, _V3 = "#/definitions/", "#/components/schemas/"
_CODES = {200: "OK", 201: "Created", 202: "Accepted"}
_GENERIC = f"{_V2}io.k8s.apimachinery"
# Clients look for these where they are used.
_NEVER_SHARED = frozenset({"name", "fieldValidation", "dryRun"})


def paths_v3(operations: Iterable[Operation], name_of: NameOf) -> tuple[Obj, set[str]]:
    """The paths, and the definitions that they name."""
    names: set[str] = set()
    paths: Obj = {}
    for path, found in _by_path(operations).items():
        common = _common(found)
        item: Obj = {}
        for operation in found:
            takes, gives = name_of(operation.takes), name_of(operation.gives)
            names |= {name for name in (takes, gives) if name}
            item[operation.method] = _operation_v3(operation, common, takes, gives)
        if common:
            item["parameters"] = [_parameter_v3(one) for one in _sorted(common)]
        paths[path] = item
    return paths, names


def paths_v2(operations: Iterable[Operation], name_of: NameOf) -> tuple[Obj, set[str], Obj]:
    """The paths, the definitions that they name, and the parameters that they share."""
    names: set[str] = set()
    paths: Obj = {}
    shared = _Shared()
    for path, found in _by_path(operations).items():
        common = _common(found)
        item: Obj = {}
        for operation in found:
            takes, gives = name_of(operation.takes), name_of(operation.gives)
            names |= {name for name in (takes, gives) if name}
            item[operation.method] = _operation_v2(operation, common, takes, gives, shared)
        if common:
            item["parameters"] = [shared.form(_parameter_v2(one)) for one in _sorted(common)]
        paths[path] = item
    return paths, names, shared.parameters


def _by_path(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.path, []).append(operation)
    return found


def _common(operations: list[Operation]) -> set[Parameter]:
    return set(operations[0].parameters).intersection(*(one.parameters for one in operations[1:]))


def _sorted(parameters: Iterable[Parameter]) -> list[Parameter]:
    return sorted(parameters, key=lambda one: (one.name, one.where))


def _told(operation: Operation) -> Obj:
    out: Obj = {
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.operation_id,
    }
    if operation.action:
        out["x-kubernetes-action"] = operation.action
        out["x-kubernetes-group-version-kind"] = operation.kind
    return out


def _operation_v3(
    operation: Operation, common: set[Parameter], takes: str | None, gives: str | None
) -> Obj:
    out = _told(operation)
    own = [one for one in _sorted(operation.parameters) if one not in common]
    if own:
        out["parameters"] = [_parameter_v3(one) for one in own]
    if takes:
        body = {"schema": {"$ref": f"{_V3}{takes}"}}
        out["requestBody"] = {"content": dict.fromkeys(operation.consumes, body)}
        if operation.method != "delete":
            out["requestBody"]["required"] = True
    schema = _given(operation, gives, _V3)
    content = {media: {"schema": schema} for media in operation.produces}
    out["responses"] = _answers(operation, {"content": content} if schema else {})
    return out


def _operation_v2(
    operation: Operation,
    common: set[Parameter],
    takes: str | None,
    gives: str | None,
    shared: "_Shared",
) -> Obj:
    out = _told(operation)
    if operation.consumes:
        out["consumes"] = list(operation.consumes)
    out |= {"produces": list(operation.produces), "schemes": ["https"]}
    own: list[Obj] = []
    if takes:
        required = {} if operation.method == "delete" else {"required": True}
        body = {"name": "body", "in": "body", **required, "schema": {"$ref": f"{_V2}{takes}"}}
        own.append(shared.form(body))
    parameters = (one for one in _sorted(operation.parameters) if one not in common)
    own += [shared.form(_parameter_v2(one)) for one in parameters]
    if own:
        out["parameters"] = own
    schema = _given(operation, gives, _V2)
    out["responses"] = _answers(operation, {"schema": schema} if schema else {})
    return out


def _answers(operation: Operation, what: Obj) -> Obj:
    good = {str(code): {"description": _CODES[code], **what} for code in operation.codes}
    return {**good, "401": {"description": "Unauthorized"}}


def _given(operation: Operation, gives: str | None, prefix: str) -> Obj | None:
    if operation.gives == TEXT:
        return {"type": "string"}
    return {"$ref": f"{prefix}{gives}"} if gives else None


def _parameter_v3(one: Parameter) -> Obj:
    out: Obj = {"name": one.name, "in": one.where}
    if one.description:
        out["description"] = one.description
    if one.where == "path":
        out["required"] = True
    return {**out, "schema": {"type": one.type, "uniqueItems": True}}


def _parameter_v2(one: Parameter) -> Obj:
    out: Obj = {"uniqueItems": True, "type": one.type}
    if one.description:
        out["description"] = one.description
    out |= {"name": one.name, "in": one.where}
    return {**out, "required": True} if one.where == "path" else out


class _Shared:
    """The parameters of a document that several paths have."""

    def __init__(self) -> None:
        self.parameters: Obj = {}
        self._names: dict[bytes, str] = {}

    def form(self, parameter: Obj) -> Obj:
        """A reference; itself, where clients want it in place, or it is of one kind."""
        if parameter["name"] in _NEVER_SHARED:
            return parameter
        if parameter["in"] == "body" and not parameter["schema"]["$ref"].startswith(_GENERIC):
            return parameter
        text = orjson.dumps(parameter)
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"{parameter['name']}-{_digest(text)}"
            self.parameters[name] = parameter
        return {"$ref": f"#/parameters/{name}"}


def _digest(text: bytes) -> str:
    """Eight letters of FNV-1, as kube-openapi names shared parameters."""
    number = 0xCBF29CE484222325
    for byte in text:
        number = (number * 0x100000001B3) % (1 << 64) ^ byte
    return base64.urlsafe_b64encode(number.to_bytes(8)[:6]).decode()
