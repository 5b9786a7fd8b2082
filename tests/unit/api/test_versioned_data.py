"""Facts of a version: those of the default one, with what is different."""

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.api.versioned_data import merged, versioned_data
from sampan.core.files.packaged_data import packaged_data
from sampan.version import DEFAULT_MINOR, MINORS


def test_a_patch_changes_adds_and_removes():
    base = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert merged(base, {"a": {"b": None, "c": [2]}, "e": {"f": {"g": 1}}}) == {
        "a": {"c": [2]},
        "d": 2,
        "e": {"f": {"g": 1}},
    }
    assert base == {"a": {"b": 1, "c": [1]}, "d": 2}


def test_the_default_version_is_as_the_files_have_it():
    assert versioned_data("messages") == packaged_data("messages")


@pytest.mark.parametrize("minor", [minor for minor in MINORS if minor != DEFAULT_MINOR])
def test_what_is_different_is_different(minor):
    """A patch that changes nothing is a mistake."""
    patches = packaged_data(f"versions/{minor}")
    with features.used(Release(minor)):
        for name in patches.keys() - {"about"}:
            assert versioned_data(name) != packaged_data(name)
            assert unchanged(packaged_data(name), patches[name]) == []


def unchanged(base, patch, path=()):
    """Paths at which a patch says what is so anyway."""
    found = []
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            found += unchanged(base[key], value, (*path, key))
        elif (value is None and key not in base) or (value is not None and base.get(key) == value):
            found.append((*path, key))
    return found
