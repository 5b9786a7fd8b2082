"""Which type owns its fields in which way, from the published definitions.

Job: kind → Node; each definition is turned into nodes once, when it is first needed. Pure.
Invariant: a type that holds itself ends in the same node.
"""

from sampan.api import convert
from sampan.api.apply.custom_fields import custom_root
from sampan.api.apply.field_types import LEAF, KeyedList, Map, Node, Struct
from sampan.api.custom.custom_version import CustomVersion, custom_of
from sampan.api.kinds import Kinds
from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type, type_from
from sampan.api.schema.message_table import Messages, fields_always_written, load_messages
from sampan.api.schema.published import Schema

# Upstream's defaults of the fields that tell items apart; the definitions here do not have them.
_KEY_DEFAULTS: dict[str, Obj] = {
    "io.k8s.api.core.v1.ContainerPort": {"protocol": "TCP"},
    "io.k8s.api.core.v1.ServicePort": {"protocol": "TCP"},
}


_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class FieldSchema:
    def __init__(self, schema: Schema, kinds: Kinds | None = None) -> None:
        self._schema = schema
        self._kinds = kinds or Kinds()
        self._messages: Messages = {}
        self._structs: dict[str, Node] = {}

    def root(self, api_version: str, kind: str) -> Node | None:
        """None where nothing is known of the kind."""
        name = self._schema.name_of(api_version, kind)
        if name is not None:
            return self._named(name, granular=False)
        row = self._kinds.by_kind(api_version, kind)
        custom = None if row is None else custom_of(row)
        return None if custom is None else self._custom_root(custom)

    def _custom_root(self, custom: CustomVersion) -> Node:
        if custom.field_root is None:
            metadata = self._named(_OBJECT_META, granular=False)
            custom.field_root = custom_root(custom.root, metadata)
        found: Node = custom.field_root
        return found

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
        if found is None or (granular and found is LEAF):
            found = self._compiled(name, granular)
        return found

    def _compiled(self, name: str, granular: bool) -> Node:
        definition = self._schema.definition(name)
        atomic = definition.get("x-kubernetes-map-type") == "atomic"
        properties = definition.get("properties")
        if not properties or (atomic and not granular):
            self._structs[name] = LEAF
            return LEAF
        self._messages = self._messages or load_messages()
        struct = Struct(fields_always_written(self._messages, name))
        if not atomic:
            self._structs[name] = struct
        for key, published in properties.items():
            struct.add(key, self._of_property(published))
        return struct

    def _of_property(self, published: Obj) -> Node:
        if published.get("x-kubernetes-map-type") == "atomic":
            return LEAF
        granular = published.get("x-kubernetes-map-type") == "granular"
        return self._of(type_from(published), granular)

    def _of(self, kind: Type, granular: bool = False) -> Node:
        if kind.shape == "object":
            return self._named(kind.name, granular)
        if kind.shape == "map":
            assert kind.element is not None, kind
            return Map(self._of(kind.element))
        if kind.shape == "list" and kind.list_type != "atomic":
            assert kind.element is not None, kind
            return self._key(kind, kind.element)
        return LEAF

    def _key(self, kind: Type, element: Type) -> Node:
        if kind.list_type == "set":
            return KeyedList(LEAF, (), {}, frozenset())
        defaults = _KEY_DEFAULTS.get(element.name, {})
        wanted = self._schema.definition(element.name).get("required") or ()
        required = frozenset(key for key in kind.map_keys if key in wanted and key not in defaults)
        return KeyedList(self._of(element, granular=True), kind.map_keys, defaults, required)
