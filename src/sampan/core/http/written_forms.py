"""An object as bytes that somebody asked for: JSON in a line, JSON for people, YAML.

Job: the object → its bytes, as Go's serializers write it.
"""

from collections.abc import Mapping
from typing import Any

import orjson

JSON = "application/json"
YAML = "application/yaml"


def written(obj: Mapping[str, Any], media: str = JSON, *, pretty: bool = False) -> bytes:
    """`pretty`: for people, who get several lines."""
    if media == YAML:
        return _yaml(obj)
    if pretty:
        return orjson.dumps(obj, option=orjson.OPT_INDENT_2)
    return orjson.dumps(obj, option=orjson.OPT_APPEND_NEWLINE)


def _yaml(obj: Mapping[str, Any]) -> bytes:
    import yaml  # most clients never ask for it

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: bytes = yaml.dump(
        obj, Dumper=dumper, default_flow_style=False, allow_unicode=True, encoding="utf-8"
    )
    return text
