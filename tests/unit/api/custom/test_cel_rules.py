"""x-kubernetes-validations: a table of rules with known verdicts."""

import pytest

from sampan.api.custom.cel_rules import Rules
from sampan.api.custom.structural import MISSING, structural_of

FIELDS = {
    "n": {"type": "integer"},
    "s": {"type": "string"},
    "d": {"type": "string", "format": "date-time"},
    "dash-ed": {"type": "string"},
    "namespace": {"type": "string"},
    "null": {"type": "string", "nullable": True},
    "list": {"type": "array", "items": {"type": "integer"}},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "ios": {"x-kubernetes-int-or-string": True},
}
GOOD = {
    "n": 3, "s": "abc", "d": "2026-11-15T10:00:00Z", "dash-ed": "x", "namespace": "y", "null": None,
    "list": [1, 2], "map": {"k": "v"}, "ios": 5,
}  # fmt: skip


def verdict(rule, value=GOOD, old=MISSING, **more):
    rules = [{"rule": rule, **more}]
    root = {"type": "object", "properties": FIELDS, "x-kubernetes-validations": rules}
    return Rules(structural_of(root), is_object=False).run(value, old)


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("self.n > 2", True),
        ("self.n > 3", False),
        ("has(self.s) && self.s.startsWith('a')", True),
        ("self.d.getFullYear() == 2026", True),
        ("self.dash__dash__ed == 'x' && self.__namespace__ == 'y'", True),
        ("self.dash__dash__ed == 'x'", True),
        ("!has(self.null)", True),
        ("self.list.all(x, x < 3)", True),
        ("self.list.sum() == 4", False),
        ("'k' in self.map && self.map['k'] == 'v'", True),
        ("type(self.ios) == int", True),
        ("self == oldSelf", True),  # no old value: not asked
    ],
)
def test_a_rule_holds_or_does_not(rule, holds):
    assert (verdict(rule).errors == []) == holds


def test_a_transition_is_judged_by_the_old_value():
    assert verdict("self.n >= oldSelf.n", GOOD, {**GOOD, "n": 2}).errors == []
    found = verdict("self.n >= oldSelf.n", GOOD, {**GOOD, "n": 4}, message="it went down")
    assert [str(one) for one in found.errors] == [": Invalid value: it went down"]


def test_an_unchanged_object_that_breaks_a_rule_is_a_warning():
    found = verdict("self.n > 100", GOOD, dict(GOOD), message="more")
    assert found.errors == []
    assert found.warnings == [": Invalid value: more"]


def test_reason_field_path_and_message_expression():
    found = verdict(
        "self.n > 100", reason="FieldValueForbidden", fieldPath=".n",
        messageExpression="'was ' + string(self.n)",
    )  # fmt: skip
    assert [(one.reason, one.field, one.message) for one in found.errors] == [
        ("FieldValueForbidden", "n", "Forbidden: was 3")
    ]


def test_a_rule_that_fails_is_an_error():
    found = verdict("self.map['absent'] == 'v'")
    assert len(found.errors) == 1
    assert "no such key: absent" in found.errors[0].message
