import json
from xml.etree import ElementTree

from sampan.api.rules.journey import journey_of
from sampan.cmd.diagnosis import journey_formats

UID = "12345678-1234-1234-1234-123456789abc"
HOSTILE = "<script>&\"'\x1b]"


def trace():
    parts = [
        ("apiserver", "create pods", 100.0, 100.01, {"user": HOSTILE}),
        ("apiserver", "store commit", 100.004, 100.009, {}),
        ("kubelet", HOSTILE, 100.02, 100.08, {}),
    ]
    spans = [
        {"lane": lane, "name": name, "began": began, "ended": ended, "parent": -1, "facts": facts}
        for lane, name, began, ended, facts in parts
    ]
    spans[1]["parent"] = 0
    return {"uid": UID, "spans": spans, "dropped": 0}


def journey():
    found = journey_of(trace())
    assert found is not None
    return found


def test_perfetto_has_a_thread_for_each_component_and_microseconds():
    made = journey_formats.perfetto("pod/web", journey())
    json.dumps(made)
    names = [event["args"]["name"] for event in made["traceEvents"] if event["ph"] == "M"]
    assert names == ["pod/web", "apiserver", "kubelet"]
    steps = [event for event in made["traceEvents"] if event["ph"] == "X"]
    assert (steps[0]["ts"], steps[0]["dur"]) == (0.0, 10000.0)
    assert steps[2]["tid"] == 2


def test_otlp_spans_have_the_uid_as_trace_and_parents_that_exist():
    made = journey_formats.otlp(trace())
    spans = [
        span
        for resource in made["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert {span["traceId"] for span in spans} == {UID.replace("-", "")}
    ids = [span["spanId"] for span in spans]
    assert len(set(ids)) == 3
    assert all(len(one) == 16 for one in ids)
    parents = {span["name"]: span.get("parentSpanId") for span in spans}
    assert parents["store commit"] == ids[0]
    assert parents["create pods"] is None
    assert spans[0]["startTimeUnixNano"] == "100000000000"


def test_svg_is_xml_whatever_the_names_are():
    text = journey_formats.svg(f"pod/{HOSTILE[:9]}", journey())
    tree = ElementTree.fromstring(text)
    rectangles = tree.findall("{http://www.w3.org/2000/svg}rect")
    assert len(rectangles) == 1 + 3  # the ground, and the steps
    assert "<script>" not in text
