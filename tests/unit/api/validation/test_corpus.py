"""The corpus: manifests of every kind, good and bad, each with what must come of it.

A file has a good `base` manifest; a case changes it (`set`: path → value, null takes away) and says
what defaulting must give (`defaults`), or the exact causes for which it is refused (`causes`).
Cases under `updates` and `status` compare two versions: `from` makes the old one.
"""

import re
from pathlib import Path

import pytest
import yaml

from sampan.api.defaults import apply_defaults
from sampan.api.objects import copy_of
from sampan.api.resources import by_kind
from sampan.api.schema.published import Schema
from sampan.api.validation import validate_create, validate_status_update, validate_update

pytestmark = pytest.mark.kubernetes("1.35")  # which was asked

CORPUS = Path(__file__).parent.parent / "corpus"
_STEP = re.compile(r"\[(\d+)\]|\['([^']+)'\]|([^.\[]+)")


def steps_of(path):
    return [int(m[1]) if m[1] else m[2] or m[3] for m in _STEP.finditer(path)]


def put(obj, path, value):
    *way, last = steps_of(path)
    for step in way:
        if isinstance(step, int):
            obj = obj[step]
        else:
            obj = obj.setdefault(step, {}) if obj.get(step) is not None else _made(obj, step)
    if isinstance(last, int) and last == len(obj):
        obj.append(value)
    elif value is None:
        obj.pop(last, None)
    else:
        obj[last] = value


def _made(obj, step):
    obj[step] = {}
    return obj[step]


def value_at(obj, path):
    for step in steps_of(path):
        obj = obj[step] if isinstance(step, int) else obj.get(step)
        if obj is None:
            return None
    return obj


def changed(obj, changes):
    obj = copy_of(obj)
    for path, value in (changes or {}).items():
        put(obj, path, copy_of(value))
    return obj


def ready(resource, obj):
    meta = obj.setdefault("metadata", {})
    if resource.namespaced:
        meta.setdefault("namespace", "default")
    return obj


def load(file):
    data = yaml.load(file.read_text(), yaml.CSafeLoader)
    for group in ("good", "bad", "updates", "status"):
        for case in data.get(group) or ():
            yield group, data["base"], case


CASES = [
    pytest.param(group, base, case, id=f"{file.stem}: {case['name']}")
    for file in sorted(CORPUS.glob("*.yaml"))
    for group, base, case in load(file)
]


def base_of(case, base):
    return case.get("base") or base


def made(schema, base, changes):
    """The object as a client's bytes would have given it: decoded, with known fields only."""
    obj = changed(base, changes)
    resource = by_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None, obj["kind"]
    checked = schema.check(resource.api_version, resource.kind, obj)
    assert not checked.unknown
    return resource, ready(resource, checked.obj)


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


def agrees(found, expected):
    """A cause that ends in an ellipsis is compared by its beginning."""
    return len(found) == len(expected) and all(
        one.startswith(want[:-1]) if want.endswith("…") else one == want
        for one, want in zip(sorted(found), sorted(expected), strict=True)
    )


@pytest.mark.parametrize(("group", "base", "case"), CASES)
def test_the_corpus_is_defaulted_and_judged_as_upstream_does(schema, group, base, case):
    """[A4]"""
    base = base_of(case, base)
    if group in ("good", "bad"):
        resource, obj = made(schema, base, case.get("set"))
        apply_defaults(resource, obj)
        for path, value in (case.get("defaults") or {}).items():
            assert value_at(obj, path) == value, path
        again = copy_of(obj)
        apply_defaults(resource, again)
        assert again == obj, "defaulting twice changes something"
        found = [str(error) for error in validate_create(resource, obj)]
    else:
        resource, old = made(schema, base, case.get("from"))
        apply_defaults(resource, old)
        old["metadata"].setdefault("resourceVersion", "1")
        old["metadata"].setdefault("uid", "5a2e")
        _, new = made(schema, old, case.get("set"))
        apply_defaults(resource, new)
        judge = validate_update if group == "updates" else validate_status_update
        found = [str(error) for error in judge(resource, new, old)]
    expected = case.get("causes") or []
    assert (group != "bad") or expected, "a bad manifest says why"
    assert agrees(found, expected), "\n".join(
        ["", *sorted(found), "— expected —", *sorted(expected)]
    )
