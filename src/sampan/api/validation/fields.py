"""Small rules that many kinds share: enums, numbers, references, file modes, paths inside volumes.

Job: one rule per function, added to the list of causes that it is given.
Invariant: a missing value means that the rule does not apply, unless the rule is that it is there.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from sampan.api.errors import FieldError, invalid_value, not_supported, required_value
from sampan.api.objects import Obj
from sampan.api.rules import names

Errors = list[FieldError]
MAX_INT32 = 2**31 - 1
NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than 0"
IMMUTABLE = "field is immutable"


class Repeats:
    """Whether an item of a list has been there before: of a long list, too, one look for each."""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()

    def __call__(self, item: Hashable) -> bool:
        known = item in self._seen
        self._seen.add(item)
        return known


def validate_not_negative(value: int | None, path: str, errors: Errors) -> None:
    if value is not None and value < 0:
        errors.append(invalid_value(path, value, NOT_NEGATIVE))


def validate_choice(value: str | None, choices: Sequence[str], path: str, errors: Errors) -> None:
    """One of a closed set, and not left out."""
    if not value:
        errors.append(required_value(path))
    elif value not in choices:
        errors.append(not_supported(path, value, choices))


def validate_optional_choice(
    value: str | None, choices: Sequence[str], path: str, errors: Errors
) -> None:
    if value is not None and value not in choices:
        errors.append(not_supported(path, value, choices))


def validate_with(
    rule: Callable[[Any], names.Complaints], value: Any, path: str, errors: Errors
) -> None:
    for wrong in rule(value):
        errors.append(invalid_value(path, value, wrong))


def validate_prefixed_path(value: str, path: str, errors: Errors) -> None:
    """A domain and a path in it: `example.com/queue`."""
    host, _, rest = value.partition("/")
    if not value:
        errors.append(required_value(path))
    elif not host or not rest:
        why = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid_value(path, value, why))
    else:
        validate_with(names.dns_subdomain, host, path, errors)
        validate_with(names.http_path, rest, path, errors)


def validate_immutable(new: Any, old: Any, path: str, errors: Errors) -> None:
    if (new or None) != (old or None):
        errors.append(invalid_value(path, new, IMMUTABLE))


def validate_required(value: Any, path: str, errors: Errors, detail: str = "") -> None:
    if not value:
        errors.append(required_value(path, detail))


def validate_mode(mode: int | None, path: str, errors: Errors) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        why = "must be a number between 0 and 0777 (octal), both inclusive"
        errors.append(invalid_value(path, mode, why))


def has_backsteps(target: str) -> bool:
    return ".." in target and ".." in target.replace("\\", "/").split("/")


def validate_no_backsteps(target: str, path: str, errors: Errors) -> None:
    if has_backsteps(target):
        errors.append(invalid_value(path, target, "must not contain '..'"))


def validate_descending_path(target: str, path: str, errors: Errors) -> None:
    if target.startswith("/"):
        errors.append(invalid_value(path, target, "must be a relative path"))
    validate_no_backsteps(target, path, errors)


def validate_file_path(target: str, path: str, errors: Errors) -> None:
    """A file inside a volume: names that start with two dots are the kubelet's own."""
    validate_descending_path(target, path, errors)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid_value(path, target, "must not start with '..'"))


def validate_port(port: Any, path: str, errors: Errors) -> None:
    """A number, or the name of a container's port."""
    if isinstance(port, str):
        validate_with(names.port_name, port, path, errors)
    else:
        validate_with(names.port_number, port or 0, path, errors)


def is_set(obj: Obj, key: str) -> bool:
    return obj.get(key) is not None
