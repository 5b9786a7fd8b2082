"""What is written in protobuf is read back as the same object."""

import struct
from pathlib import Path

import orjson
import pytest

from sampan.api.protobuf.codec import ProtobufReader
from sampan.api.protobuf.values import plain_fields
from sampan.api.protobuf.writer import NotWritable, ProtobufWriter
from sampan.api.schema.published import Schema

SCHEMA = Schema.load()
READER, WRITER = ProtobufReader(SCHEMA), ProtobufWriter(SCHEMA)
RECORDED = Path(__file__).parents[3] / "flow/recorded/api_server_v1.35.8_creates.jsonl"
OBJECTS = [
    case["object"]
    for case in map(orjson.loads, RECORDED.read_bytes().splitlines())
    if "object" in case and '"*"' not in orjson.dumps(case["object"]).decode()
]


def read_back(obj):
    found, problems = READER.object_in(WRITER.object_bytes(obj))
    assert problems == []
    return SCHEMA.check(obj["apiVersion"], obj["kind"], found).obj


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda one: one["kind"])
def test_every_recorded_object_comes_back(obj):
    """[A11] Kind and version of a claim within another object are not written, as upstream."""
    for claim in obj.get("spec", {}).get("volumeClaimTemplates") or ():
        claim.pop("apiVersion"), claim.pop("kind")
    assert read_back(obj) == SCHEMA.check(obj["apiVersion"], obj["kind"], obj).obj


def test_a_list_has_its_metadata_and_items():
    item = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    head = {"resourceVersion": "7", "remainingItemCount": 3}
    data = WRITER.object_bytes(
        {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": head, "items": [item, item]}
    )
    raw = plain_fields(data, 4, len(data))[2]
    assert raw.count(WRITER._message("io.k8s.api.core.v1.ConfigMap", item)) == 2
    assert b"\x12\x017" in raw


def test_an_event_has_its_length_before_it():
    status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410}
    frame = WRITER.event_frame("ERROR", status)
    (size,) = struct.unpack(">I", frame[:4])
    assert size == len(frame) - 4
    event = plain_fields(frame, 4, len(frame))
    assert event[1] == b"ERROR"
    raw = plain_fields(event[2], 0, len(event[2]))[1]
    assert raw == WRITER.object_bytes(status)


def test_what_has_no_form_is_refused():
    with pytest.raises(NotWritable):
        WRITER.object_bytes({"apiVersion": "example.com/v1", "kind": "Boat"})
