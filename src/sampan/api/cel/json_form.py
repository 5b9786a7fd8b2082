"""The values of CEL as a JSON document has them. Pure.

Job: what an expression computed → JSON data, for patches that a policy makes.
"""

from base64 import b64encode
from collections.abc import Mapping

from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.values import Duration, Timestamp, Uint, Value, shown_key, type_of
from sampan.api.cel.libraries.times import text_of
from sampan.api.quantity import Quantity


def to_json(value: Value) -> Value:
    """As a JSON document has it. Raises EvaluationError."""
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        return value
    if kind is Uint:
        return int(value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {_json_key(key): to_json(item) for key, item in value.items()}
    if kind is Timestamp or kind is Duration:
        return text_of(value)
    if kind is bytes:
        return b64encode(value).decode()
    if kind is Quantity:
        return str(value)
    raise EvaluationError(f"type conversion error from '{type_of(value)}' to JSON")


def _json_key(key: Value) -> str:
    key = shown_key(key)
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)
