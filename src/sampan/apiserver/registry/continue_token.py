"""The continue token of a list: where its next page begins. Pure.

Job: token → text and back, in upstream's form.
Invariant: a token that is garbled is refused with its reason; no list begins anew because of one.
"""

import base64
import binascii
import posixpath

import orjson

from sampan.api import json_reading
from sampan.api.decode_scalars import json_word
from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

_VERSION = "meta.k8s.io/v1"
_ALPHABET = lazy_pattern(r"[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class ContinueToken:
    revision: int  # -1: whatever is newest
    start: str


def encode_token(token: ContinueToken) -> str:
    data = {"v": _VERSION, "rv": token.revision, "start": token.start}
    return base64.urlsafe_b64encode(orjson.dumps(data)).rstrip(b"=").decode()


def decode_token(text: str) -> ContinueToken:
    """Raises BadRequest."""
    data = _object_in(_bytes_of(text))
    version, revision, start = data.get("v") or "", data.get("rv") or 0, data.get("start") or ""
    if version != _VERSION:
        raise _invalid(f"server does not recognize this encoded version {version}")
    if not revision:
        raise _invalid(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f"encoded start key empty (version {_VERSION})")
    path = start if start.startswith("/") else f"/{start}"
    if _clean(path) != path:
        raise _invalid(start)
    return ContinueToken(revision, path[1:])


def _bytes_of(text: str) -> bytes:
    text = text.replace("\r", "").replace("\n", "")  # which Go's reader skips
    good = _ALPHABET.match(text)
    assert good is not None
    if good.end() < len(text):
        raise _invalid(f"illegal base64 data at input byte {good.end()}")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise _invalid(f"illegal base64 data at input byte {len(text) - 1}") from error


def _object_in(data: bytes) -> Obj:
    try:
        found = json_reading.loads(data)
    except ValueError as error:
        raise _invalid(str(error)) from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        kind = "Go value of type storage.continueToken"
        raise _invalid(f"json: cannot unmarshal {json_word(found)} into {kind}")
    for key, wanted in (("v", str), ("rv", int), ("start", str)):
        value = found.get(key)
        if value is not None and type(value) is not wanted:
            shown = (
                f"number {value}" if wanted is int and type(value) is float else json_word(value)
            )
            go_type = "int64" if wanted is int else "string"
            field = f"Go struct field continueToken.{key} of type {go_type}"
            raise _invalid(f"json: cannot unmarshal {shown} into {field}")
    return found


def _clean(path: str) -> str:
    """As Go's path.Clean, which keeps no second slash at the beginning."""
    return "/" + posixpath.normpath(path).lstrip("/")


def _invalid(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")
