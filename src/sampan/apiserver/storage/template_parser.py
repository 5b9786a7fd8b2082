"""Template parser: JSON texts that differ in a few strings, parsed by what they differ in.

Job: JSON texts of which many differ in a few strings only → objects whose equal parts are one
    object with those of others. What differs is learnt from the texts themselves. Pure.
Invariant: the same value as a parser finds, its keys in the same order; where that is not sure the
    answer is None, and the text is a parser's.
Invariant: forms, and what they remember, are bounded.
Owner: who reads a store from its beginning; it goes with that read.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from sampan.api.objects import Obj
from sampan.apiserver.storage.template_builder import MARK, TemplateBuilder, builder_of
from sampan.core.bounded import FlushedMemo
from sampan.core.patterns import lazy_pattern

FORMS = 16  # as neighbours have them; the one that was found last is tried first
MOST_SLOTS = 200
LAYOUTS = 64
SETTLED = 8  # texts in a row in which nothing new differs, before a builder is worth its making
REVIEWED = 16_384  # texts after which it is known what hardly comes again
LEARNT_FROM = 256  # texts that had no form; afterwards one of SELDOM: to learn takes long
SELDOM = 16
# What a text is made of: quotes, escapes, and what lies between them.
_PIECE = lazy_pattern(r'[^"\\]+|\\u[0-9a-fA-F]{4}|\\.|"', re.DOTALL)
_MARK_ESCAPED = f"\\u{ord(MARK):04x}"
_ANY = "\0"  # in a shape: a string's characters, whatever they are


class TemplateParser:
    def __init__(self) -> None:
        self._forms: list[_Form] = []
        self._strange = 0  # texts of no form that was known

    def __len__(self) -> int:
        return len(self._forms)

    def parse(self, data: bytes) -> Obj | None:
        """None where it has to be parsed."""
        text = data.decode()
        forms = self._forms
        for number, form in enumerate(forms):
            values = form.values(text)
            if values is not None:
                if number:
                    forms.insert(0, forms.pop(number))
                return form.obj(values)
        self._strange += 1
        if self._strange < LEARNT_FROM or not self._strange % SELDOM:
            self._learn(text)
        return None

    def forget(self) -> None:
        """At the end; nothing is parsed any more."""
        while self._forms:
            self._forms.pop().forget()

    def _learn(self, text: str) -> None:
        pieces = _PIECE.findall(text)
        if MARK in text or _MARK_ESCAPED in text.lower() or "".join(pieces) != text:
            return
        shape = _shape(pieces)
        known = next((form for form in self._forms if form.shape == shape), None)
        if known is None:
            self._forms.insert(0, _Form(shape, pieces))
        elif not known.widen(pieces):
            self._forms.remove(known)
        for form in self._forms[FORMS:]:
            form.forget()
        del self._forms[FORMS:]


class _Layout(NamedTuple):
    parts: Callable[[str], tuple[str, ...]]
    slots: Callable[[str], tuple[str, ...]]


class _Form:
    """What texts of one shape have in common, and where they differ: inside of strings only."""

    def __init__(self, shape: str, pieces: list[str]) -> None:
        self.shape = shape
        self._pieces = pieces
        self._slots: list[int] = []  # numbers of the pieces that differ
        self._parts: tuple[str, ...] = ()  # what is before, between and behind the slots
        # By the length of the text.
        self._layouts: FlushedMemo[int, _Layout] = FlushedMemo(LAYOUTS)
        self._split()
        self._builder: TemplateBuilder | None = None
        self._texts = 0  # since it was widened

    def widen(self, pieces: list[str]) -> bool:
        """To another text of the shape. False: so much differs that it is none."""
        pairs = enumerate(zip(self._pieces, pieces, strict=True))
        self._slots = sorted({*self._slots, *(at for at, (old, new) in pairs if old != new)})
        self._split()
        self.forget()
        return len(self._slots) <= MOST_SLOTS

    def _split(self) -> None:
        bounds = [-1, *self._slots, len(self._pieces)]
        self._parts = tuple(
            "".join(self._pieces[start + 1 : end]) for start, end in pairwise(bounds)
        )
        self._layouts = FlushedMemo(LAYOUTS)

    def values(self, text: str) -> Sequence[str] | None:
        """What a text of this form has in its slots. No quote and no escape is in any of them, so
        that the rest of the text means the same as in all others."""
        layout = self._layouts.known.get(len(text))
        if layout is not None and layout.parts(text) == self._parts:
            found: Sequence[str] = layout.slots(text)
        else:
            places = self._search(text)
            if places is None:
                return None
            found = [text[place] for place in places]
            self._remember(len(text), places)
        every = "".join(found)
        return None if "\\" in every or '"' in every else found

    def _search(self, text: str) -> list[slice] | None:
        """Where its slots are."""
        begin, *rest = self._parts
        if not text.startswith(begin):
            return None
        at, places = len(begin), []
        for part in rest:
            end = text.find(part[0], at)  # a quote or an escape: it ends what may differ
            if end < 0 or not text.startswith(part, end):
                return None
            places.append(slice(at, end))
            at = end + len(part)
        return places if at == len(text) else None

    def _remember(self, length: int, places: list[slice]) -> None:
        """Texts that are as long have their slots at the same places, mostly."""
        if len(places) < 2:
            return  # an itemgetter of one is another thing
        starts, stops = [each.start for each in places], [each.stop for each in places]
        between = map(slice, [0, *stops], [*starts, length])
        self._layouts.keep(length, _Layout(itemgetter(*between), itemgetter(*places)))

    def forget(self) -> None:
        if self._builder is not None:
            self._builder.forget()
        self._builder, self._texts = None, 0

    def obj(self, values: Sequence[str]) -> Obj | None:
        self._texts += 1
        if self._texts < SETTLED:
            return None
        if self._texts == SETTLED:
            self._builder = builder_of(self._pieces, self._slots)
        if self._builder is None:
            return None
        if not self._texts % REVIEWED:
            self._builder.review(REVIEWED)
        return self._builder.obj(values)


def _shape(pieces: list[str]) -> str:
    """The text without what its strings say; escapes count as structure."""
    inside, shape = False, []
    for piece in pieces:
        if piece == '"':
            inside = not inside
        elif inside and piece[0] != "\\":
            piece = _ANY
        shape.append(piece)
    return "".join(shape)
