import pytest

from sampan.controllers.stages.jq_query import QueryError, parse_query

POD = {
    "metadata": {
        "annotations": {"a.b/c": "5s", "": "none"},
        "ownerReferences": [{"kind": "Job"}, {"kind": "Other"}],
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "n": 3},
            {"type": "Initialized", "status": "False", "n": 1},
        ],
    },
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".", [POD]),
        (".status.phase", ["Running"]),
        ('.["status"].phase', ["Running"]),
        ('."status"."phase"', ["Running"]),
        (".status.none", []),
        (".status.none.deeper", []),
        ('.metadata.annotations["a.b/c"]', ["5s"]),
        ('.metadata.annotations[""]', ["none"]),
        (".metadata.ownerReferences.[].kind", ["Job", "Other"]),
        (".metadata.ownerReferences[].kind", ["Job", "Other"]),
        (".metadata.ownerReferences[0].kind", ["Job"]),
        (".metadata.ownerReferences[-1].kind", ["Other"]),
        (".metadata.ownerReferences[7].kind", []),
        ('.status.conditions.[] | select( .type == "Ready" ) | .status', ["True"]),
        ('.status.conditions[] | select(.n > 1 and .type != "x") | .type', ["Ready"]),
        ('.status.conditions[] | select(.n >= 3 or .status == "False") | .n', [3, 1]),
        ("[.status]", None),
        (".status.phase, .metadata.none", ["Running"]),
        (".metadata.none // .status.phase", ["Running"]),
        ("(.status.conditions | length) == 2", [True]),
        (".metadata.none | not", [True]),
        # What cannot be looked into.
        (".status.phase.deeper", None),
        (".status.none[]", None),
        (".status.none[]?", []),
        (".status.phase[0]", None),
        (".status.conditions < 3", None),
    ],
)
def test_what_a_query_finds(text, found):
    if text == "[.status]":
        with pytest.raises(QueryError, match=r"'\['"):
            parse_query(text)
    else:
        assert parse_query(text).find(POD) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("map(.a)", "'map'"),
        ('.a | test("b")', "'test'"),
        ("$x", r"'\$'"),
        (".a + 1", r"'\+'"),
        ("..", "a name is missing"),
        (".a[1:2]", "']' is missing"),
        ("{a: 1}", "'{'"),
        ("select(.a", r"'\)' is missing"),
        (".a |", "ends too early"),
        (".a[", "']' is missing"),
        ("", "ends too early"),
        ("~", "'~'"),
        ('.["\\u0041"]', "not understood"),
        ("(" * 60 + "." + ")" * 60, "nested too deeply"),
        ("." + "a" * 5000, "more than 4096"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(text, said):
    with pytest.raises(QueryError, match=said):
        parse_query(text)


def test_what_is_found_is_bounded():
    items = list(range(200))
    query = parse_query(".[] | 1, 2")
    assert query.find(items) == [1, 2] * 200
    many = parse_query(".[]")
    assert many.find(list(range(10_001))) is None
