"""Fields that CEL cannot name as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.cel.language.field_names import escape, unescape


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("foo", "foo"), ("foo-bar", "foo__dash__bar"), ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"), ("namespace", "__namespace__"), ("in", "__in__"),
        ("1a", None), ("a b", None), ("int", "int"),
    ],
)  # fmt: skip
def test_a_field_has_one_name_in_expressions(name, shown):
    assert escape(name) == shown


@given(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_./-]{0,12}", fullmatch=True))
def test_an_escaped_name_leads_back_to_the_field(name):
    shown = escape(name)
    assert shown is not None
    assert unescape(shown) == name
