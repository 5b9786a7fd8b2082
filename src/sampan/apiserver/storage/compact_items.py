"""Compact items: of the parsed and the serialised form one is kept, the other made on demand.

Job: of kinds of which there are many, the form that takes less memory: parsed, with parts that
    others share, or bytes, packed behind those of another one.
Invariant: both forms say the same, whichever is kept.
"""

import orjson

from sampan.api.calls import Item
from sampan.api.objects import Obj
from sampan.apiserver.storage.packing import Packed


class PackedItem(Item):
    """Of a kind that is written often and read seldom: a parsed object takes several times the
    memory of its bytes, and its bytes many times that of what they differ by."""

    __slots__ = ("_packed",)

    def __init__(self, key: str, revision: int, packed: Packed) -> None:
        self.key = key
        self.revision = revision
        self.size = len(packed.pattern or packed.data)
        self.as_is = self.forms = None
        self._packed = packed

    @property
    def data(self) -> bytes:  # type: ignore[override]  # read-only, as every item's should be
        return self._packed.text()

    @property
    def obj(self) -> Obj:  # type: ignore[override]  # likewise
        found: Obj = orjson.loads(self.data)
        return found


class SharedItem(Item):
    """Of a kind of which many are alike: what is parsed shares its parts with others; its bytes,
    which cannot, are made in some microseconds."""

    __slots__ = ()

    def __init__(self, key: str, revision: int, obj: Obj, size: int) -> None:
        self.key = key
        self.revision = revision
        self.obj = obj
        self.size = size
        self.as_is = self.forms = None

    @property
    def data(self) -> bytes:  # type: ignore[override]  # read-only, as every item's should be
        return orjson.dumps(self.obj)
