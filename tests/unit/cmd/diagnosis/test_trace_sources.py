"""What several API servers know of one object, put together."""

from sampan.cmd.diagnosis.trace_sources import merged

UID = "0af76519-16cd-43dd-8448-eb211c80319c"
OWN = UID.replace("-", "")


def span(name, began, parent=-1):
    return {"lane": "apiserver", "name": name, "began": began, "ended": began + 1, "facts": {},
            "parent": parent}  # fmt: skip


def document(*spans, uid=UID, begun=OWN, name="web"):
    trace = {"uid": uid, "traceId": begun, "spans": list(spans), "dropped": 0}
    return {"name": name, "traces": [trace]}


def test_each_adds_what_only_it_knows_and_parts_stay_with_their_whole():
    one = document(span("create pods", 1.0), span("decoding", 1.0, 0))
    other = document(span("create pods/binding", 5.0), span("decoding", 5.0, 0), begun="f" * 32)
    [trace] = merged([one, other, one])["traces"]
    told = [(item["name"], item["began"], item["parent"]) for item in trace["spans"]]
    assert told == [
        ("create pods", 1.0, -1), ("decoding", 1.0, 0),
        ("create pods/binding", 5.0, -1), ("decoding", 5.0, 2),
    ]  # fmt: skip
    assert trace["traceId"] == "f" * 32


def test_the_newest_object_of_a_name_is_the_first():
    old, new = document(span("create pods", 1.0)), document(span("create pods", 9.0), uid="new")
    assert [trace["uid"] for trace in merged([old, new])["traces"]] == ["new", UID]


def test_the_objects_of_a_namespace_are_put_together_by_name():
    one = {"objects": [document(span("create pods", 1.0)), document(name="other")]}
    other = {"objects": [document(span("delete pods", 3.0))]}
    found = {item["name"]: item for item in merged([one, other])["objects"]}
    assert set(found) == {"web", "other"}
    assert len(found["web"]["traces"][0]["spans"]) == 2
