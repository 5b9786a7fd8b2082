"""x-kubernetes-embedded-resource: objects inside of objects.

Job: find embedded objects, and bring their metadata into the form of ObjectMeta. Pure.
Invariant: after `coerce` every embedded object's metadata has known fields only.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.custom.structural import Structural, nodes_below
from sampan.api.decode_scalars import Path, path_text
from sampan.api.errors import BadRequest, value_text
from sampan.api.objects import Obj
from sampan.api.schema.published import Schema

# (an embedded object, where it is)
Visit = Callable[[Obj, Path], None]
Walk = Callable[[Any, Path, Visit], None]


def compile_embedded(root: Structural) -> Walk | None:
    """Visits every embedded object below the root, not the root itself."""
    return _below(root)


def coerce(schema: Schema, walk: Walk, obj: Obj, unknown: list[str]) -> None:
    """Changes `obj`. Raises BadRequest-worthy ValueError texts as BadRequest without a head."""

    def visit(inner: Obj, path: Path) -> None:
        if "metadata" not in inner:
            return
        given = inner["metadata"]
        try:
            found, more = schema.check_metadata(given)
        except ValueError as error:
            place = path_text((path, "metadata"))
            raise BadRequest(f"{place}: Invalid value: {value_text(given)}: {error}") from error
        unknown.extend(f"{path_text((path, 'metadata'))}.{item}" for item in more)
        inner["metadata"] = found

    walk(obj, (), visit)


def _below(node: Structural) -> Walk | None:
    if not _concerns(node):
        return None
    fields = {key: _walk(prop) for key, prop in node.properties.items()}
    others = _walk(node.additional) if isinstance(node.additional, Structural) else None
    items = None if node.items is None else _walk(node.items)

    def below(value: Any, path: Path, visit: Visit) -> None:
        if type(value) is dict:
            for key, item in value.items():
                walk = fields.get(key, others)
                if walk is not None:
                    walk(item, (path, key), visit)
        elif type(value) is list and items is not None:
            for at, item in enumerate(value):
                items(item, (path, at), visit)

    return below


def _walk(node: Structural) -> Walk | None:
    below = _below(node)
    if not node.embedded:
        return below

    def walk(value: Any, path: Path, visit: Visit) -> None:
        if type(value) is dict:
            visit(value, path)
        if below is not None:
            below(value, path, visit)

    return walk


def _concerns(node: Structural) -> bool:
    return any(item.embedded or _concerns(item) for item in nodes_below(node))
