"""Errors that upstream finds by declarative rules, in a release where those have the word.

Job: their texts, of which what is required or forbidden says no more, and their place, after all
    others. Pure.
"""

from collections.abc import Iterable
from typing import Any

from sampan.api import features
from sampan.api.errors import FieldError, invalid_value


class DeclaredError(FieldError):
    __slots__ = ()


def declared(error: FieldError) -> FieldError:
    """As the release tells it; `error`: as rules written by hand do."""
    if not features.changed("DeclarativeErrors"):
        return error
    is_short = error.reason in ("FieldValueRequired", "FieldValueForbidden")
    message = error.message.partition(":")[0] if is_short else error.message
    return DeclaredError(error.reason, error.field, message)


def declared_immutable(path: str, form: Any) -> FieldError:
    """`form`: the new value, which declarative rules do not show."""
    shown = None if features.changed("DeclarativeErrors") else form
    return declared(invalid_value(path, shown, "field is immutable"))


def in_order(errors: Iterable[FieldError]) -> list[FieldError]:
    return sorted(errors, key=lambda error: isinstance(error, DeclaredError))
