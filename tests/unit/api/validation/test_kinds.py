"""Whatever comes in, defaults and validation answer; they never raise."""

import base64
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.convert import from_stored, to_stored
from sampan.api.defaults import apply_defaults, defaults_of
from sampan.api.objects import copy_of
from sampan.api.schema.published import Schema
from sampan.api.validation import (
    rules_of,
    validate_create,
    validate_status_update,
    validate_update,
)
from tests.support.releases import rows_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "spec",
                    "containers",
                    "name",
                    "template",
                    "rules",
                    "ports",
                    "labels",
                    "env",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TEXTS = (
    "", "a", "A", "a.b", "10.0.0.1", "fd00::1", "*", "Always", "RollingUpdate", "In", "Exists",
    "cpu", "hugepages-2Mi", "example.com/x", "../x", "metadata.labels['a']", "None", "25%",
    "* * * * *", "@every x", "ClientIP", "NodePort", "\u00e9\x00", "a" * 300, "http://[::1", "v1",
)  # fmt: skip
NUMBERS = (-1, 0, 1, 2, 80, 70000, 2**31 - 1)
QUANTITIES = ("0", "1", "-1", "500m", "1Gi", "3Mi", "1e3", "100n")


class Maker:
    """Random objects of the right shape: the fields of the schema, with odd values in them."""

    def __init__(self, schema, rng):
        self._schema, self._rng = schema, rng

    def value(self, kind, depth):
        rng = self._rng
        if kind.shape == "object":
            return self.struct(kind.name, depth)
        if kind.shape == "list":
            return [self.value(kind.element, depth - 1) for _ in range(rng.randint(0, 2))]
        if kind.shape == "map":
            return {rng.choice(TEXTS): self.value(kind.element, depth - 1) for _ in range(2)}
        if kind.shape == "boolean":
            return rng.random() < 0.5
        if kind.format == "quantity":
            return rng.choice(QUANTITIES)
        if kind.format == "int-or-string":
            return rng.choice(TEXTS + NUMBERS)
        if kind.format == "byte":
            return base64.b64encode(rng.choice(TEXTS).encode()).decode()
        if kind.format in ("date-time", "micro-time"):
            return "2026-01-01T00:00:00Z"
        if kind.shape in ("integer", "number"):
            return rng.choice(NUMBERS)
        return rng.choice(TEXTS) if kind.shape == "string" else {"type": rng.choice(TEXTS)}

    def struct(self, name, depth):
        if depth <= 0:
            return {}
        fields = self._schema.fields_of(name)
        chance = 0.9 if depth > 6 else min(0.5, 6 / (len(fields) + 1))
        return {
            key: self.value(kind, depth - 1)
            for key, kind in fields.items()
            if self._rng.random() < chance
        }


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


@pytest.mark.parametrize(
    "resource", rows_of(), ids=lambda row: f"{row.group_resource}.{row.version}"
)
def test_every_rule_answers_for_every_object_of_its_kind_without_the_net(schema, resource):
    """[A4] The entry points catch what has the wrong shape; what has the right one needs no net."""
    kind = schema.type_of(resource.api_version, resource.kind)
    for seed in range(25):
        maker = Maker(schema, random.Random(f"{resource.kind} {seed}"))
        old, new = maker.struct(kind.name, 9), maker.struct(kind.name, 9)
        defaults_of(resource)(old)
        defaults_of(resource)(new)
        again = copy_of(new)
        defaults_of(resource)(again)
        assert again == new, "defaulting twice changes something"
        rules = rules_of(resource)
        rules.create(new, [])
        rules.update(new, old, [])
        rules.status(new, old, [])
        for one in (*validate_create(resource, new), *validate_update(resource, new, old)):
            assert "the object's shape" not in one.message, one.message
        to_stored(resource, new)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(rows_of()), JSON, JSON)
def test_an_object_of_any_shape_gets_an_answer(resource, spec, other):
    new = {"metadata": {"name": "a", "namespace": "b"}, "spec": spec, "data": other}
    old = {"metadata": {"name": "a"}, "spec": other, "status": spec}
    apply_defaults(resource, new)
    for errors in (
        validate_create(resource, new),
        validate_update(resource, new, old),
        validate_status_update(resource, new, old),
        validate_create(resource, {"metadata": other}),
        validate_create(resource, {}),
    ):
        assert all(isinstance(str(one), str) for one in errors)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([row for row in rows_of() if row.stored_in != ("", "")]), JSON)
def test_conversion_there_and_back_keeps_what_was_written(resource, extra):
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": {}}
    obj["note"] = extra
    assert from_stored(resource, to_stored(resource, obj)) == obj


def test_rules_of_all_kinds_are_loaded_ahead_but_those_that_need_cryptography():
    code = (
        "import sys; from sampan.api.validation import kinds; kinds.load_all(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "sampan.api.validation.workloads.job" in loaded
    assert "cryptography" not in loaded
