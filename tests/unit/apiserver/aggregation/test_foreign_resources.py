"""apiserver/aggregation/foreign_resources.py: whatever others say, discovery stays whole."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.apiserver.aggregation.foreign_resources import Unreadable, discovered_resources

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = ("name", "singularName", "namespaced", "kind", "group", "verbs", "shortNames", "categories")
ROWS = st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from(["a", "a/b", "/"]))


def listed(*rows):
    return orjson.dumps({"kind": "APIResourceList", "resources": rows})


def test_a_resource_with_its_subresources():
    tea = {"name": "teas", "singularName": "tea", "namespaced": True, "kind": "Tea",
           "verbs": ["get"], "shortNames": ["t"]}  # fmt: skip
    scale = {"name": "teas/scale", "group": "autoscaling", "version": "v1", "kind": "Scale",
             "verbs": ["get"], "namespaced": True}  # fmt: skip
    [found] = discovered_resources(listed(scale, tea), "tea.example", "v1")
    assert found["responseKind"] == {"group": "tea.example", "version": "v1", "kind": "Tea"}
    assert (found["scope"], found["shortNames"]) == ("Namespaced", ["t"])
    [sub] = found["subresources"]
    assert sub["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"kind":"Status"}', b'{"kind":"APIResourceList"}'])
def test_what_is_no_list_is_unreadable(body):
    with pytest.raises(Unreadable):
        discovered_resources(body, "g", "v1")


@settings(max_examples=40)
@given(st.lists(ROWS | JSON, max_size=4))
def test_every_entry_has_the_form_that_clients_read(rows):
    for entry in discovered_resources(orjson.dumps({"kind": "APIResourceList", "resources": rows}),
                                      "g", "v1"):  # fmt: skip
        assert isinstance(entry["resource"], str)
        assert entry["scope"] in ("Namespaced", "Cluster")
        assert all(isinstance(verb, str) for verb in entry["verbs"])
        for sub in entry.get("subresources", ()):
            assert isinstance(sub["subresource"], str)
            assert isinstance(sub["responseKind"]["kind"], str)
