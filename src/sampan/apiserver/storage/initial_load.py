"""Initial load of the watch cache: entries of the store to items.

Job: entries, in the order of their keys, to items.
Owner: the watch cache, for as long as it reads.
"""

from sampan.api.calls import Item
from sampan.apiserver.storage.packing import Patterns
from sampan.apiserver.storage.sharing import SharedValues
from sampan.apiserver.storage.stored_form import is_alike, item_from, share_parts
from sampan.apiserver.storage.template_parser import TemplateParser


class InitialLoad:
    def __init__(self, sharing: SharedValues, patterns: Patterns) -> None:
        self._sharing, self._patterns = sharing, patterns
        self._texts = TemplateParser()

    def item(self, key: str, value: bytes, revision: int, neighbour: Item | None) -> Item:
        """`neighbour`: the one before it, often of the same template."""
        obj = self._texts.parse(value) if is_alike(value) else None
        item = item_from(key, value, revision, obj, self._patterns)
        if obj is None:
            share_parts(item, neighbour, self._sharing)
        return item

    def end(self) -> None:
        """What was remembered of texts goes at once."""
        self._texts.forget()
