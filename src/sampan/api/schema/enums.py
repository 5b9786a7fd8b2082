"""Fields of a closed set of values, as v1.35 publishes them.

Job: from a definition to its fields' values, and to those of the items of its lists, by
    data/enums.json. Pure.
"""

import functools

from sampan.core.files.packaged_data import packaged_data

Values = dict[str, list[str]]
_ITEMS = "[]"


def enums_of(name: str) -> Values:
    """Of a definition: field → the values that it may have."""
    found = _enums().get(name, {})
    return {field: values for field, values in found.items() if not field.endswith(_ITEMS)}


def item_enums_of(name: str) -> Values:
    """Likewise of its lists: field → the values that its items may have."""
    found = _enums().get(name, {})
    return {
        field.removesuffix(_ITEMS): values
        for field, values in found.items()
        if field.endswith(_ITEMS)
    }


@functools.cache
def _enums() -> dict[str, Values]:
    found: dict[str, Values] = packaged_data("enums")["definitions"]
    return found
