"""Messages built with an independent protobuf runtime, read by ours. [A11]"""

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from sampan.api import protobuf_core_fields, protobuf_group_fields
from sampan.api.protobuf import MAGIC, ProtobufError, ProtobufReader
from sampan.api.schema import Schema

SCHEMA = Schema.load()
READER = ProtobufReader(SCHEMA)
FIELD = descriptor_pb2.FieldDescriptorProto


def messages():
    """A few of upstream's messages, as their .proto files declare them."""
    file = descriptor_pb2.FileDescriptorProto(name="test.proto", package="t", syntax="proto2")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, field, kind in fields:
            repeated = kind.startswith("[]")
            kind = kind.removeprefix("[]")
            label = FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL
            one = made.field.add(name=field, number=number, label=label)
            if kind in ("string", "int32", "int64", "bool", "bytes"):
                one.type = getattr(FIELD, f"TYPE_{kind.upper()}")
            else:
                one.type, one.type_name = FIELD.TYPE_MESSAGE, f".t.{kind}"

    message("TypeMeta", (1, "apiVersion", "string"), (2, "kind", "string"))
    message("Unknown", (1, "typeMeta", "TypeMeta"), (2, "raw", "bytes"), (3, "enc", "string"))
    message("Entry", (1, "key", "string"), (2, "value", "string"))
    message("BytesEntry", (1, "key", "string"), (2, "value", "bytes"))
    message("Time", (1, "seconds", "int64"), (2, "nanos", "int32"))
    message("Quantity", (1, "string", "string"))
    message("QuantityEntry", (1, "key", "string"), (2, "value", "Quantity"))
    message("IntOrString", (1, "type", "int64"), (2, "intVal", "int32"), (3, "strVal", "string"))
    message(
        "ObjectMeta", (1, "name", "string"), (2, "generateName", "string"),
        (3, "namespace", "string"), (8, "creationTimestamp", "Time"), (11, "labels", "[]Entry"),
        (14, "finalizers", "[]string"),
    )  # fmt: skip
    message("EmptyDir", (1, "medium", "string"))
    message("VolumeSource", (2, "emptyDir", "EmptyDir"))
    message("Volume", (1, "name", "string"), (2, "volumeSource", "VolumeSource"))
    message("HTTPGet", (1, "path", "string"), (2, "port", "IntOrString"))
    message("ProbeHandler", (2, "httpGet", "HTTPGet"))
    message("Probe", (1, "handler", "ProbeHandler"), (2, "initialDelaySeconds", "int32"))
    message("Resources", (1, "limits", "[]QuantityEntry"))
    message(
        "Container", (1, "name", "string"), (2, "image", "string"), (3, "command", "[]string"),
        (8, "resources", "Resources"), (10, "livenessProbe", "Probe"), (16, "stdin", "bool"),
    )  # fmt: skip
    message(
        "PodSpec", (1, "volumes", "[]Volume"), (2, "containers", "[]Container"),
        (4, "terminationGracePeriodSeconds", "int64"), (10, "nodeName", "string"),
        (11, "hostNetwork", "bool"), (99, "fromTheFuture", "string"),
    )  # fmt: skip
    message("Pod", (1, "metadata", "ObjectMeta"), (2, "spec", "PodSpec"))
    message("Secret", (1, "metadata", "ObjectMeta"), (2, "data", "[]BytesEntry"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClassesForFiles(["test.proto"], pool)


T = messages()


def wrapped(kind, message, api_version="v1"):
    unknown = T["t.Unknown"](raw=message.SerializeToString())
    unknown.typeMeta.apiVersion, unknown.typeMeta.kind = api_version, kind
    return MAGIC + unknown.SerializeToString()


def test_a_pod_comes_out_as_its_json():
    pod = T["t.Pod"]()
    pod.metadata.name, pod.metadata.generateName, pod.metadata.namespace = "web", "", "default"
    pod.metadata.creationTimestamp.SetInParent()
    pod.metadata.labels.add(key="app", value="")
    spec = pod.spec
    spec.volumes.add(name="tmp").volumeSource.emptyDir.SetInParent()
    main = spec.containers.add(name="main", image="app:1", command=["sh", ""], stdin=False)
    main.resources.limits.add(key="cpu").value.string = "500m"
    main.livenessProbe.initialDelaySeconds = 3
    get = main.livenessProbe.handler.httpGet
    get.path, get.port.type, get.port.strVal = "/", 1, "http"
    spec.terminationGracePeriodSeconds = 0
    spec.nodeName, spec.hostNetwork = "", False
    obj, problems = READER.object_in(wrapped("Pod", pod))
    assert problems == []
    assert obj == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": ""}},
        "spec": {
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "app:1",
                    "command": ["sh", ""],
                    "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {
                        "httpGet": {"path": "/", "port": "http"},
                        "initialDelaySeconds": 3,
                    },
                }
            ],
            "terminationGracePeriodSeconds": 0,
        },
    }
    assert SCHEMA.check("v1", "Pod", obj).obj == obj


def test_times_and_bytes():
    secret = T["t.Secret"]()
    secret.metadata.creationTimestamp.seconds = 1_700_000_000
    secret.data.add(key="a", value=b"\0\xff")
    obj, _ = READER.object_in(wrapped("Secret", secret))
    assert obj["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert obj["data"] == {"a": "AP8="}


def test_a_field_of_the_future_is_reported():
    pod = T["t.Pod"]()
    pod.spec.fromTheFuture = "x"
    _, problems = READER.object_in(wrapped("Pod", pod))
    assert problems == ['unknown field "spec" number 99']


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(data):
    unknown = T["t.Unknown"](raw=data)
    unknown.typeMeta.apiVersion, unknown.typeMeta.kind = "v1", "Pod"
    for body in (data, MAGIC + data, MAGIC + unknown.SerializeToString()):
        try:
            READER.object_in(body)
        except ProtobufError:
            continue


def test_kinds_that_are_not_in_the_table_are_named():
    with pytest.raises(ProtobufError, match="CustomResourceDefinition cannot be read"):
        READER.object_in(
            wrapped("CustomResourceDefinition", T["t.Pod"](), "apiextensions.k8s.io/v1")
        )


def test_every_name_in_the_table_is_a_field_of_the_schema():
    """What the schema does not know cannot be read: a typing mistake would show here."""
    known = set(SCHEMA.names())
    for name, numbers in READER._messages.items():
        if name in known:
            fields = SCHEMA.fields_of(name)
            wrong = [one for one in numbers.values() if not one.startswith("*")]
            assert [one for one in wrong if one not in fields] == [], name
    text = protobuf_core_fields.FIELDS + protobuf_group_fields.FIELDS
    assert len(READER._messages) == text.count(":")
