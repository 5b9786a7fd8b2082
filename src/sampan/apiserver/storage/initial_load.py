"""Initial load of the watch cache: entries of the store to items.

Job: entries, in the order of their keys, to items; what is none is NotAnObject.
Owner: the watch cache, for as long as it reads.
"""

from sampan.api.calls import Item
from sampan.api.objects import Obj
from sampan.apiserver.storage.packing import Patterns
from sampan.apiserver.storage.sharing import SharedValues
from sampan.apiserver.storage.stored_form import (
    NotAnObject,
    is_alike,
    is_object,
    item_from,
    share_parts,
)
from sampan.apiserver.storage.template_parser import TemplateParser


class InitialLoad:
    def __init__(self, sharing: SharedValues, patterns: Patterns) -> None:
        self._sharing, self._patterns = sharing, patterns
        self._texts = TemplateParser()

    def item(
        self, key: str, value: bytes, revision: int, neighbour: Item | None, kind: str = ""
    ) -> Item:
        """`neighbour`: the one before it, often of the same template. `kind`: what it has to be.
        Raises NotAnObject."""
        obj = self._parsed(value, kind) if is_alike(value) else None
        item = item_from(key, value, revision, obj, self._patterns, kind)
        if obj is None:
            share_parts(item, neighbour, self._sharing)
        return item

    def _parsed(self, value: bytes, kind: str) -> Obj | None:
        try:
            obj = self._texts.parse(value)
        except ValueError as error:  # no text, or nothing that a form can be made of
            raise NotAnObject(f"no JSON: {error}") from error
        return obj if is_object(obj, kind) else None

    def end(self) -> None:
        """What was remembered of texts goes at once."""
        self._texts.forget()
