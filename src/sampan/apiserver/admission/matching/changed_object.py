"""Objects that a webhook or a mutating policy changed: checked, pruned and defaulted again.

Job: read it as a body is read, and put it in the place of the object that it was.
Invariant: it has only fields of its kind, of their types, with their defaults; what else was given
    is left out, as upstream's decoder does, and a value of another type is an error.
"""

from sampan.api import convert
from sampan.api.custom.custom_version import custom_of
from sampan.api.defaults import apply_defaults
from sampan.api.objects import Obj
from sampan.api.schema.published import NotHandled, Schema
from sampan.apiserver.admission.chain import CONNECT, Attributes
from sampan.apiserver.admission.matching.rules import Matched, shown_object


def put_changed(schema: Schema, attributes: Attributes, matched: Matched, changed: Obj) -> bool:
    """`changed`: in the version of the rule. In place, because the chain holds the same object;
    True where anything is different now. Raises NotHandled."""
    obj = attributes.obj
    assert obj is not None
    new = _in_version_of_the_write(attributes, matched, changed)
    new |= {field: obj[field] for field in ("apiVersion", "kind") if field in obj}
    new = _decode(schema, attributes, new)
    if attributes.operation != CONNECT:  # options have no defaults
        apply_defaults(attributes.resource, new)
    if new == obj:
        return False
    obj.clear()
    obj.update(new)
    return True


def _in_version_of_the_write(attributes: Attributes, matched: Matched, changed: Obj) -> Obj:
    resource = attributes.resource
    if matched.resource is resource:
        return dict(changed)
    if custom_of(resource) is not None:
        return dict(shown_object(resource, changed))
    return convert.from_stored(resource, convert.to_stored(matched.resource, changed))


def _decode(schema: Schema, attributes: Attributes, new: Obj) -> Obj:
    api_version, kind = str(new.get("apiVersion") or ""), str(new.get("kind") or "")
    custom = custom_of(attributes.resource)
    if custom is not None and kind == custom.kind:
        return custom.decoded(new).obj
    if schema.name_of(api_version, kind) is None:
        return new
    return {**schema.check(api_version, kind, new).obj, "apiVersion": api_version, "kind": kind}


def words_of(error: NotHandled) -> str:
    """As upstream: the decoder's own words, as an error of the server."""
    return f"Internal error occurred: {error.why}"
