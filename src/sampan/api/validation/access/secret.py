"""Secrets: keys, size, and what each well-known type must hold.

Job: what must hold of a Secret.
Invariant: no value of a secret ever appears in a cause.
"""

import base64
import binascii

import orjson

from sampan.api.decode_scalars import json_word
from sampan.api.errors import FieldError, invalid_value, required_value, too_long
from sampan.api.objects import Obj, annotations_of
from sampan.api.rules import names
from sampan.api.strict_json import syntax_complaint
from sampan.api.validation.access.config_map import SIZE_LIMIT_BYTES, decoded_size, validate_promise
from sampan.api.validation.fields import validate_immutable
from sampan.api.validation.rules import Rules

Errors = list[FieldError]
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON_KEYS = (".dockercfg", ".dockerconfigjson")


def validate_secret(secret: Obj, errors: Errors) -> None:
    data = secret.get("data") or {}
    total = 0
    for key, value in data.items():
        for wrong in names.config_key(key):
            errors.append(invalid_value(f"data[{key}]", key, wrong))
        total += decoded_size(value)
    if total > SIZE_LIMIT_BYTES:
        errors.append(too_long("data", SIZE_LIMIT_BYTES))
    _validate_type(secret, data, errors)


def validate_secret_update(new: Obj, old: Obj, errors: Errors) -> None:
    validate_immutable(new.get("type"), old.get("type"), "type", errors)
    validate_promise(new, old, ("data",), errors)
    validate_secret(new, errors)


def _validate_type(secret: Obj, data: Obj, errors: Errors) -> None:
    kind = secret.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        if not annotations_of(secret).get(_ACCOUNT_NAME):
            errors.append(required_value(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        errors += [required_value("data[username]"), required_value("data[password]")]
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            errors.append(required_value(f"data[{key}]"))
        elif key in _JSON_KEYS and (why := _json_complaint(data[key])):
            errors.append(invalid_value(f"data[{key}]", "<secret contents redacted>", why))


def _json_complaint(encoded: str) -> str:
    """Why Go could not read it as an object; empty where it could."""
    try:
        text = base64.b64decode(encoded).decode(errors="replace")
    except binascii.Error:
        return ""  # said elsewhere
    wrong = syntax_complaint(text)
    if wrong or text.lstrip()[0] in "{n":
        return wrong
    word = json_word(orjson.loads(text))
    return f"json: cannot unmarshal {word} into Go value of type map[string]interface {{}}"


RULES = Rules(names.dns_subdomain, validate_secret, validate_secret_update)
