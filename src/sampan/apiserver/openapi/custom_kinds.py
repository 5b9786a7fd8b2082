"""Custom kinds in the OpenAPI documents.

Job: structural schemas → definitions of versions 2 and 3, beside the published ones. Pure.
Invariant: version 2 says nothing that older clients would take wrongly: what may be null, or
    anything, has no type there.
"""

from collections.abc import Iterable, Sequence

from sampan.api.custom.custom_version import CustomVersion, custom_of
from sampan.api.objects import Obj, copy_of
from sampan.api.resources import Resource
from sampan.api.schema.published import Schema

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_OBJECT_META, _LIST_META = f"{_META}.ObjectMeta", f"{_META}.ListMeta"
_POD, _POD_LIST = "io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.PodList"
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_EMBEDDED_VERSION = (
    "apiVersion defines the versioned schema of this representation of an object. More info: "
    f"{_CONVENTIONS}#resources"
)
_EMBEDDED_KIND = (
    "kind is a string value representing the type of this object. In CamelCase. More info: "
    f"{_CONVENTIONS}#types-kinds"
)
_X = "x-kubernetes-"
_NOT_IN_V2 = ("allOf", "anyOf", "default", "not", "nullable", "oneOf", "example", "externalDocs")
_UNTYPED_IN_V2 = ("type", "items", "properties", "additionalProperties", "required")


class ExtendedSchema(Schema):
    """The published definitions, and those of custom kinds."""

    def __init__(self, published: Schema, rows: Sequence[Resource]) -> None:
        self.__dict__.update(published.__dict__)
        self._own: dict[str, str] = {}  # "apiVersion Kind" → name
        self._meta: dict[str, str] = {}
        self.custom: list[CustomVersion] = []
        for row in rows:
            custom = custom_of(row)
            if custom is not None:
                self.custom.append(custom)
                name = definition_name(custom)
                self._own[f"{custom.api_version} {custom.kind}"] = name
                self._own[f"{custom.api_version} {custom.list_kind}"] = f"{name}List"
                self._meta |= {name: _OBJECT_META, f"{name}List": _LIST_META}

    def name_of(self, api_version: str, kind: str) -> str | None:
        return self._own.get(f"{api_version} {kind}") or super().name_of(api_version, kind)

    def definition(self, name: str) -> Obj:
        """Of a custom kind only what it refers to; the whole is put in at the end."""
        if name in self._meta:
            return {"properties": {"metadata": {"$ref": self._meta[name]}}}
        return super().definition(name)


def definition_name(custom: CustomVersion) -> str:
    """`org.example.v1.Widget`: the group's words backwards."""
    words = ".".join(reversed(custom.group.split(".")))
    return f"{words}.{custom.version}.{custom.kind}"


def with_custom_v3(document: Obj, schema: ExtendedSchema) -> Obj:
    prose = _Prose(schema)
    for custom in schema.custom:
        definitions = document["components"]["schemas"]
        definitions |= _definitions(custom, prose, _v3(custom.schema, prose), 3)
    return document


def with_custom_v2(document: Obj, schema: ExtendedSchema) -> Obj:
    prose = _Prose(schema)
    for custom in schema.custom:
        document["definitions"] |= _definitions(custom, prose, _v2(custom.schema), 2)
    return document


class _Prose:
    """The published words for what every object has."""

    def __init__(self, schema: Schema) -> None:
        texts = schema.explanations()
        own, listed = texts.get(_POD, ("", {}))[1], texts.get(_POD_LIST, ("", {}))[1]
        self.version, self.kind = own.get("apiVersion", ""), own.get("kind", "")
        self.metadata, self.list_metadata = own.get("metadata", ""), listed.get("metadata", "")


def _reference(name: str, form: int, text: str) -> Obj:
    if form == 2:
        return {"description": text, "$ref": f"#/definitions/{name}"}
    return {"description": text, "allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _definitions(custom: CustomVersion, prose: _Prose, own: Obj, form: int) -> Obj:
    name = definition_name(custom)
    told = _marks(custom, custom.kind)
    open_root = bool(custom.schema.get(f"{_X}preserve-unknown-fields"))
    if form == 3 or not open_root:
        own["properties"] = {
            **(own.get("properties") or {}),
            "apiVersion": {"description": prose.version, "type": "string"},
            "kind": {"description": prose.kind, "type": "string"},
            "metadata": _reference(_OBJECT_META, form, prose.metadata),
        }
    prefix = "#/definitions/" if form == 2 else "#/components/schemas/"
    items = {
        "description": f"List of {custom.plural}. More info: {_CONVENTIONS}",
        "type": "array",
        "items": {"$ref": f"{prefix}{name}"},
    }
    listed = {
        "description": f"{custom.list_kind} is a list of {custom.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": prose.version, "type": "string"},
            "items": items,
            "kind": {"description": prose.kind, "type": "string"},
            "metadata": _reference(_LIST_META, form, prose.list_metadata),
        },
        **_marks(custom, custom.list_kind),
    }
    return {name: {**own, **told}, f"{name}List": listed}


def _marks(custom: CustomVersion, kind: str) -> Obj:
    named = {"group": custom.group, "kind": kind, "version": custom.version}
    found: Obj = {f"{_X}group-version-kind": [named]}
    if custom.selectable:
        fields = [{"fieldPath": item} for item in custom.selectable]
        found[f"{_X}selectable-fields"] = fields
    return found


def _v3(schema: Obj, prose: _Prose) -> Obj:
    out: Obj = copy_of(schema)
    _complete(out, prose)
    return out


def _complete(schema: Obj, prose: _Prose) -> None:
    """What the extensions stand for, for who does not know them."""
    for item in _below(schema):
        _complete(item, prose)
    if schema.get(f"{_X}int-or-string") and "anyOf" not in schema and "allOf" not in schema:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get(f"{_X}embedded-resource"):
        schema["required"] = [*(schema.get("required") or ()), "kind", "apiVersion"]
        schema["properties"] = {
            **(schema.get("properties") or {}),
            "apiVersion": {"description": _EMBEDDED_VERSION, "type": "string"},
            "kind": {"description": _EMBEDDED_KIND, "type": "string"},
            "metadata": _reference(_OBJECT_META, 3, prose.metadata),
        }


def _below(schema: Obj) -> Iterable[Obj]:
    yield from (schema.get("properties") or {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key]


def _v2(schema: Obj, is_root: bool = True) -> Obj:
    out = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    free = schema.get(f"{_X}preserve-unknown-fields") or schema.get("nullable")
    if free or schema.get(f"{_X}int-or-string"):
        out = {key: value for key, value in out.items() if key not in _UNTYPED_IN_V2}
        if is_root:
            out = {key: value for key, value in out.items() if not key.startswith(_X)}
            out["type"] = "object"
        return out
    if "properties" in out:
        out["properties"] = {key: _v2(prop, False) for key, prop in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _v2(out[key], False)
    return out
