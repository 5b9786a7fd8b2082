"""Fields of a closed set of values, as each version publishes them.

Job: from a definition to its fields' values, and to those of the items of its lists, by
    data/enums.json. Pure.
"""

from sampan.api import features
from sampan.api.versioned_data import versioned_data

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


def _enums() -> dict[str, Values]:
    return features.of_release(_read)


def _read(_release: features.Release) -> dict[str, Values]:
    found: dict[str, Values] = versioned_data("enums")["definitions"]
    return found
