from itertools import product

import pytest

from sampan.api.calls import Call, Options
from sampan.api.objects import copy_of
from sampan.api.patch.merge_patch import merge_patch
from sampan.api.patch.strategic_patch import strategic_patch
from sampan.api.resources import PODS
from sampan.api.schema.published import Schema
from sampan.apiserver.write.decoding import check_body
from sampan.apiserver.write.patching import apply_patch

SCHEMA = Schema.load()
SENT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"a": "b"}, "managedFields": [{"manager": "m"}]},
    "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"},
    "status": {"phase": "Pending", "conditions": [{"type": "A", "status": "True"}]},
}
POD = SCHEMA.check("v1", "Pod", SENT).obj  # as it is stored
PATCHES = [
    {},
    {"status": {"phase": "Running", "conditions": [{"type": "B", "status": "False"}]}},
    {"status": None},
    {"metadata": {"name": "a"}, "status": {"phase": "Running"}},
    {"metadata": {"name": "b"}, "status": {"phase": "Running"}},
    {"metadata": {"name": "a", "uid": "u"}, "status": {"phase": "Running"}},
    {"metadata": {"name": None}},
    {"metadata": None},
    {"metadata": {"labels": {"a": None, "c": "d"}}},
    {"spec": {"containers": [{"name": "c", "image": "j"}]}, "status": {"phase": None}},
    {"nosuch": 1},
    {"kind": "Pod", "spec": {"$patch": "delete"}},
    {"$retainKeys": ["spec", "apiVersion", "kind"], "spec": {"nodeName": "m"}},
    {"$patch": "replace", "metadata": {"name": "a"}},
]


def call(kind, patch, subresource=""):
    options = Options(patch_type=kind)
    return Call("patch", PODS, "default", "a", subresource, patch, options)


@pytest.mark.parametrize("patch", PATCHES, ids=str)
def test_what_a_patch_does_not_mention_is_as_if_it_had_been_merged_too(patch):
    """[A7]"""
    for kind, subresource in product(("merge", "strategic"), ("", "status")):
        if kind == "merge":
            whole = merge_patch(POD, patch)
        else:
            whole = strategic_patch(SCHEMA, "v1", "Pod", POD, patch)
        warnings, expected_warnings = [], []
        asked = call(kind, patch, subresource)
        expected = check_body(SCHEMA, asked, "v1", "Pod", whole, expected_warnings)
        before = copy_of(POD)
        found = apply_patch(SCHEMA, asked, POD, warnings)
        assert found == expected
        assert warnings == expected_warnings
        assert before == POD


def test_the_patched_object_shares_nothing_with_the_one_it_was():
    found = apply_patch(SCHEMA, call("merge", {"status": {"phase": "Running"}}), POD, [])
    assert found["spec"] == POD["spec"]
    assert found["spec"] is not POD["spec"]
    assert found["spec"]["containers"][0] is not POD["spec"]["containers"][0]
    assert found["metadata"]["labels"] is not POD["metadata"]["labels"]


def test_a_patch_of_the_status_leaves_the_rest_where_it_is():
    patch = {"metadata": {"name": "a"}, "status": {"phase": "Running"}}
    found = apply_patch(SCHEMA, call("strategic", patch, "status"), POD, [])
    assert found["spec"] is POD["spec"]
    assert found["metadata"] is not POD["metadata"]
    assert found["metadata"]["labels"] is not POD["metadata"]["labels"]
    assert found["status"]["conditions"] is not POD["status"]["conditions"]
