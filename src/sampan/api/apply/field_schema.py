"""Field types of the built-in kinds for server-side apply, from the published definitions.

Job: kind → Node; each definition is turned into nodes once, when it is first needed. Pure.
Invariant: a type that holds itself ends in the same node.
"""

from weakref import WeakKeyDictionary

from sampan.api import convert
from sampan.api.apply.custom_fields import custom_root
from sampan.api.apply.field_types import (
    BOOLEAN,
    DEDUCED,
    NUMERIC,
    STRING,
    UNTYPED,
    KeyedList,
    Leaf,
    Map,
    Node,
    Struct,
)
from sampan.api.custom.custom_version import CustomVersion, SchemaIdentity, custom_of
from sampan.api.decode import zero_of
from sampan.api.kinds import Kinds
from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type, type_from
from sampan.api.schema.message_table import Messages, fields_always_written, load_messages
from sampan.api.schema.published import Schema

# Upstream's defaults of the fields that tell items apart; the definitions here do not have them.
# A field that must be there has its zero for one.
_KEY_DEFAULTS: dict[str, Obj] = {
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.LocalObjectReference": {"name": ""},
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
}
_SCALARS = {"integer": NUMERIC, "number": NUMERIC, "boolean": BOOLEAN}
_WHOLE = Leaf("any")
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class FieldSchema:
    def __init__(self, schema: Schema, kinds: Kinds | None = None) -> None:
        self._schema = schema
        self._kinds = kinds or Kinds()
        self._messages: Messages = {}
        self._structs: dict[str, Node] = {}
        self._custom_roots: WeakKeyDictionary[SchemaIdentity, Node] = WeakKeyDictionary()

    def root(self, api_version: str, kind: str) -> Node | None:
        """None where nothing is known of the kind."""
        name = self._schema.name_of(api_version, kind)
        if name is not None:
            return self._named(name, granular=False)
        row = self._kinds.by_kind(api_version, kind)
        custom = None if row is None else custom_of(row)
        return None if custom is None else self._custom_root(custom)

    def _custom_root(self, custom: CustomVersion) -> Node:
        found = self._custom_roots.get(custom.schema_identity)
        if found is None:
            metadata = self._named(_OBJECT_META, granular=False)
            found = custom_root(custom.root, metadata)
            self._custom_roots[custom.schema_identity] = found
        return found

    def bare(self, api_version: str, kind: str) -> Obj:
        """What Go writes of an object of which nothing is set."""
        if self._schema.name_of(api_version, kind) is None:
            return {}
        return self._schema.zero(api_version, kind)

    def in_version(self, obj: Obj, api_version: str) -> Obj | None:
        """The object as another version shows it; None where there is no such version. Raises
        FormWanted, of a custom kind that a webhook converts."""
        if obj.get("apiVersion") == api_version:
            return obj
        own = self._kinds.by_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        other = self._kinds.by_kind(api_version, str(obj.get("kind")))
        if own is None or other is None or own.storage_prefix != other.storage_prefix:
            return None
        custom = custom_of(other)
        if custom is not None:
            return custom.family.converted(obj, custom.version)
        return convert.from_stored(other, convert.to_stored(own, obj))

    def _named(self, name: str, granular: bool) -> Node:
        found = self._structs.get(name)
        if found is None or (granular and isinstance(found, Leaf)):
            found = self._compiled(name, granular)
        return found

    def _compiled(self, name: str, granular: bool) -> Node:
        definition = self._schema.definition(name)
        atomic = definition.get("x-kubernetes-map-type") == "atomic"
        properties = definition.get("properties")
        if not properties:
            self._structs[name] = DEDUCED
            return DEDUCED
        self._messages = self._messages or load_messages()
        struct = Struct(fields_always_written(self._messages, name))
        found: Node = Leaf("map", struct) if atomic and not granular else struct
        if not (atomic and granular):
            self._structs[name] = found
        for key, published in properties.items():
            struct.add(key, self._of_property(published))
        return found

    def _of_property(self, published: Obj) -> Node:
        granular = published.get("x-kubernetes-map-type") == "granular"
        found = self._of(type_from(published), granular)
        if published.get("x-kubernetes-map-type") == "atomic" and not isinstance(found, Leaf):
            return Leaf("map", found)
        return found

    def _of(self, kind: Type, granular: bool = False) -> Node:
        if kind.shape == "object":
            return self._named(kind.name, granular)
        if kind.shape == "map":
            assert kind.element is not None, kind
            return Map(self._of(kind.element))
        if kind.shape == "list":
            assert kind.element is not None, kind
            return self._list(kind, kind.element)
        if kind.shape == "string":
            return STRING if kind.format in ("", "byte") else UNTYPED
        if kind.shape == "any":
            return _WHOLE if kind.name == _RAW else DEDUCED
        return _SCALARS[kind.shape]

    def _list(self, kind: Type, element: Type) -> Node:
        if kind.list_type == "atomic":
            return Leaf("list", self._of(element))
        if kind.list_type == "set":
            return KeyedList(self._of(element))
        wanted = self._schema.definition(element.name).get("required") or ()
        fields = self._schema.fields_of(element.name)
        zeros = {key: zero_of(fields[key]) for key in kind.map_keys if key in wanted}
        defaults = {**zeros, **_KEY_DEFAULTS.get(element.name, {})}
        return KeyedList(self._of(element), kind.map_keys, defaults)
