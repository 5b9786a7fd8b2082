"""Config maps: keys that can be file names, a size, and the promise not to change.

Job: what must hold of a ConfigMap; the promise is shared with secrets.
Invariant: `immutable` is never taken back.
"""

from collections.abc import Iterable

from sampan.api.errors import FieldError, field_forbidden, invalid_value, too_long
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
SIZE_LIMIT_BYTES = 1024 * 1024


def validate_config_map(config: Obj, errors: Errors) -> None:
    data, binary = config.get("data") or {}, config.get("binaryData") or {}
    total = 0
    for kind, entries, other in (
        ("data", data, binary),
        ("binaryData", binary, data),
    ):
        for key, value in entries.items():
            for wrong in names.config_key(key):
                errors.append(invalid_value(f"{kind}[{key}]", key, wrong))
            if key in other and kind == "data":
                why = "duplicate of key present in binaryData"
                errors.append(invalid_value(f"{kind}[{key}]", key, why))
            total += decoded_size(value) if kind == "binaryData" else names.size_of(value or "")
    if total > SIZE_LIMIT_BYTES:
        errors.append(too_long("[]", SIZE_LIMIT_BYTES))


def validate_config_map_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_promise(new, old, ("data", "binaryData"), errors)
    validate_config_map(new, errors)


def validate_promise(new: Obj, old: Obj, keys: Iterable[str], errors: Errors) -> None:
    if not old.get("immutable"):
        return
    why = "field is immutable when `immutable` is set"
    if not new.get("immutable"):
        errors.append(field_forbidden("immutable", why))
    for key in keys:
        if (new.get(key) or {}) != (old.get(key) or {}):
            errors.append(field_forbidden(key, why))


def decoded_size(text: str | None) -> int:
    """Of base64, without decoding it."""
    return len(text) * 3 // 4 - text[-2:].count("=") if text else 0


RULES = Rules(names.dns_subdomain, validate_config_map, validate_config_map_update)
