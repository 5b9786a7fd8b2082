"""Messages built with an independent protobuf runtime, read by ours. [A11]"""

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api import features
from sampan.api.features import Release
from sampan.api.protobuf.codec import MAGIC, ProtobufError, ProtobufReader
from sampan.api.schema.message_table import load_messages, own_tokens
from sampan.api.schema.published import Schema
from sampan.version import MINORS
from tests.support.releases import rows_of

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
            if kind in ("string", "int32", "int64", "bool", "bytes", "double"):
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
    message("Raw", (1, "raw", "bytes"))
    message("Revision", (1, "metadata", "ObjectMeta"), (2, "data", "Raw"), (3, "revision", "int64"))
    message("Strings", (1, "items", "[]string"))
    message("StringsEntry", (1, "key", "string"), (2, "value", "Strings"))
    message(
        "ReviewSpec", (3, "user", "string"), (4, "groups", "[]string"),
        (5, "extra", "[]StringsEntry"),
    )  # fmt: skip
    message("Review", (1, "metadata", "ObjectMeta"), (2, "spec", "ReviewSpec"))
    message("DeleteOptions", (1, "gracePeriodSeconds", "int64"), (5, "dryRun", "[]string"))
    message("Eviction", (1, "metadata", "ObjectMeta"), (2, "deleteOptions", "DeleteOptions"))
    message("PriorityClass", (1, "metadata", "ObjectMeta"), (2, "value", "int32"))
    message("DeploymentSpec", (1, "replicas", "int32"), (5, "minReadySeconds", "int32"))
    message("Deployment", (2, "spec", "DeploymentSpec"))
    message("LeaseSpec", (3, "acquireTime", "Time"), (5, "leaseTransitions", "int32"))
    message("Lease", (2, "spec", "LeaseSpec"))
    message("SecurityContext", (4, "supplementalGroups", "[]int64"))
    message("GroupsSpec", (14, "securityContext", "SecurityContext"))
    message("GroupsPod", (2, "spec", "GroupsSpec"))
    message("PropsOrBool", (1, "allows", "bool"), (2, "schema", "Props"))
    message("PropsOrArray", (1, "schema", "Props"), (2, "jSONSchemas", "[]Props"))
    message("PropsOrStrings", (1, "schema", "Props"), (2, "property", "[]string"))
    message("PropsEntry", (1, "key", "string"), (2, "value", "Props"))
    message("DependencyEntry", (1, "key", "string"), (2, "value", "PropsOrStrings"))
    message(
        "Props", (5, "type", "string"), (8, "default", "Raw"), (9, "maximum", "double"),
        (20, "enum", "[]Raw"), (24, "items", "PropsOrArray"), (29, "properties", "[]PropsEntry"),
        (30, "additionalProperties", "PropsOrBool"), (32, "dependencies", "[]DependencyEntry"),
        (38, "xKubernetesPreserveUnknownFields", "bool"),
    )  # fmt: skip
    message("Validation", (1, "openAPIV3Schema", "Props"))
    message("Version", (1, "name", "string"), (2, "served", "bool"), (4, "schema", "Validation"))
    message("DefinitionSpec", (7, "versions", "[]Version"))
    message("Definition", (2, "spec", "DefinitionSpec"))
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
    assert SCHEMA.check("v1", "Pod", obj).obj == {**obj, "status": {}}


def test_times_and_bytes():
    secret = T["t.Secret"]()
    secret.metadata.creationTimestamp.seconds = 1_700_000_000
    secret.data.add(key="a", value=b"\0\xff")
    obj, _ = READER.object_in(wrapped("Secret", secret))
    assert obj["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert obj["data"] == {"a": "AP8="}


def read(kind, message, api_version="v1"):
    obj, problems = READER.object_in(wrapped(kind, message, api_version))
    assert problems == []
    return obj


def test_a_zero_is_kept_where_go_can_tell_it_from_nothing():
    deployment = T["t.Deployment"]()
    deployment.spec.replicas = deployment.spec.minReadySeconds = 0
    assert read("Deployment", deployment, "apps/v1")["spec"] == {"replicas": 0}
    priority = T["t.PriorityClass"](value=0)
    assert read("PriorityClass", priority, "scheduling.k8s.io/v1")["value"] == 0
    priority = T["t.PriorityClass"](value=-5)
    assert read("PriorityClass", priority, "scheduling.k8s.io/v1")["value"] == -5


def test_times_to_the_microsecond():
    lease = T["t.Lease"]()
    lease.spec.acquireTime.seconds, lease.spec.acquireTime.nanos = -62135596799, 123456789
    lease.spec.leaseTransitions = 0
    assert read("Lease", lease, "coordination.k8s.io/v1")["spec"] == {
        "acquireTime": "0001-01-01T00:00:01.123456Z",
        "leaseTransitions": 0,
    }


@pytest.mark.parametrize(("seconds", "nanos"), [(2**62, 0), (-(2**62), 0), (0, -1), (0, 2**30)])
def test_times_that_no_calendar_has_are_refused(seconds, nanos):
    lease = T["t.Lease"]()
    lease.spec.acquireTime.seconds, lease.spec.acquireTime.nanos = seconds, nanos
    with pytest.raises(ProtobufError, match="out of range"):
        read("Lease", lease, "coordination.k8s.io/v1")


def test_lists_inside_of_maps():
    review = T["t.Review"]()
    review.spec.user, review.spec.groups[:] = "me", ["a", ""]
    review.spec.extra.add(key="scopes").value.items[:] = ["x", "y"]
    review.spec.extra.add(key="none")
    assert read("SubjectAccessReview", review, "authorization.k8s.io/v1")["spec"] == {
        "user": "me",
        "groups": ["a", ""],
        "extra": {"scopes": ["x", "y"], "none": []},
    }


def test_numbers_in_one_piece_and_one_by_one():
    pod = T["t.GroupsPod"]()
    pod.spec.securityContext.supplementalGroups[:] = [0, 5, -1]
    wanted = {"supplementalGroups": [0, 5, -1]}
    assert read("Pod", pod)["spec"]["securityContext"] == wanted
    packed = b"\x22\x0c\x00\x05" + b"\xff" * 9 + b"\x01"
    raw = b"\x12" + bytes([len(packed) + 2]) + b"\x72" + bytes([len(packed)]) + packed
    unknown = T["t.Unknown"](raw=raw)
    obj, _ = READER.object_in(MAGIC + unknown.SerializeToString(), ("v1", "Pod"))
    assert obj["spec"]["securityContext"] == wanted


@pytest.mark.parametrize("group", ["v1", "policy/v1", "meta.k8s.io/v1"])
def test_delete_options_are_of_every_group(group):
    options = T["t.DeleteOptions"](gracePeriodSeconds=0, dryRun=["All"])
    assert read("DeleteOptions", options, group) == {
        "apiVersion": group, "kind": "DeleteOptions", "gracePeriodSeconds": 0, "dryRun": ["All"]
    }  # fmt: skip


def test_an_eviction_has_its_options_inside():
    eviction = T["t.Eviction"]()
    eviction.metadata.name = "web"
    eviction.deleteOptions.gracePeriodSeconds = 0
    obj = read("Eviction", eviction, "policy/v1")
    assert obj["deleteOptions"] == {"gracePeriodSeconds": 0}


def test_raw_extensions_hold_json_or_another_object():
    revision = T["t.Revision"](revision=3)
    revision.data.raw = b'{"a":[1]}'
    assert read("ControllerRevision", revision, "apps/v1")["data"] == {"a": [1]}
    inner = T["t.Pod"]()
    inner.metadata.name = "x"
    revision.data.raw = wrapped("Pod", inner)
    obj = read("ControllerRevision", revision, "apps/v1")
    assert obj["data"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    revision.data.raw = b"{"
    with pytest.raises(ProtobufError, match="raw JSON"):
        read("ControllerRevision", revision, "apps/v1")


def test_the_schema_of_a_custom_resource():
    definition = T["t.Definition"]()
    version = definition.spec.versions.add(name="v1", served=False)
    schema = version.schema.openAPIV3Schema
    schema.type, schema.maximum, schema.default.raw = "object", 10.0, b"false"
    schema.xKubernetesPreserveUnknownFields = False
    schema.enum.add(raw=b'"a"')
    schema.enum.add(raw=b"0")
    schema.properties.add(key="one").value.items.schema.type = "string"
    many = schema.properties.add(key="many").value
    many.items.jSONSchemas.add(type="string")
    many.items.jSONSchemas.add(maximum=0.5)
    schema.additionalProperties.allows = False
    many.additionalProperties.schema.type = "integer"
    schema.dependencies.add(key="a").value.property[:] = ["b"]
    schema.dependencies.add(key="c").value.schema.type = "string"
    obj = read("CustomResourceDefinition", definition, "apiextensions.k8s.io/v1")
    assert obj["spec"]["versions"] == [
        {
            "name": "v1",
            "served": False,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "maximum": 10,
                    "default": False,
                    "x-kubernetes-preserve-unknown-fields": False,
                    "enum": ["a", 0],
                    "properties": {
                        "one": {"items": {"type": "string"}},
                        "many": {
                            "items": [{"type": "string"}, {"maximum": 0.5}],
                            "additionalProperties": {"type": "integer"},
                        },
                    },
                    "additionalProperties": False,
                    "dependencies": {"a": ["b"], "c": {"type": "string"}},
                }
            },
        }
    ]


def test_what_comes_twice_is_merged_and_the_last_scalar_wins():
    one, two = T["t.Pod"](), T["t.Pod"]()
    one.metadata.name, one.metadata.namespace = "old", "default"
    two.metadata.name = "new"
    raw = one.SerializeToString() + two.SerializeToString()
    unknown = T["t.Unknown"](raw=raw)
    obj, _ = READER.object_in(MAGIC + unknown.SerializeToString(), ("v1", "Pod"))
    assert obj["metadata"] == {"name": "new", "namespace": "default"}


def test_a_field_of_the_future_is_reported_unless_it_is_empty():
    """Go writes the empty ones too: a newer client must not be refused for them."""
    pod = T["t.Pod"]()
    pod.spec.fromTheFuture = "x"
    assert READER.object_in(wrapped("Pod", pod))[1] == ['unknown field "PodSpec" number 99']
    pod.spec.fromTheFuture = ""
    assert READER.object_in(wrapped("Pod", pod))[1] == []


def test_a_number_where_a_string_belongs_is_refused():
    unknown = T["t.Unknown"](raw=b"\x0a\x02\x08\x01")  # ObjectMeta.name = 1
    with pytest.raises(ProtobufError, match="ObjectMeta: illegal tag 1"):
        READER.object_in(MAGIC + unknown.SerializeToString(), ("v1", "Pod"))


def test_kinds_that_are_not_known_are_named():
    with pytest.raises(ProtobufError, match='no kind "Ghost" is registered for version "v7"'):
        READER.object_in(wrapped("Ghost", T["t.Pod"](), "v7"))


def test_a_body_in_another_form_is_refused():
    with pytest.raises(ProtobufError, match="does not appear to be a protobuf message"):
        READER.object_in(b'{"kind":"Pod"}')


def nested(levels):
    body = b""
    for _ in range(levels):
        body = b"\xe2\x01" + length(len(body)) + body  # not: {…}
    for tag in (b"\x0a", b"\x22", b"\x3a", b"\x12"):  # schema, version, versions, spec
        body = tag + length(len(body)) + body
    return T["t.Unknown"](raw=body)


def length(size):
    out = b""
    while size > 127:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size])


def test_depth_is_bounded():
    kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    READER.object_in(MAGIC + nested(90).SerializeToString(), kind)
    for levels in (100, 2000, 50_000):
        with pytest.raises(ProtobufError, match="exceeded max depth"):
            READER.object_in(MAGIC + nested(levels).SerializeToString(), kind)


def answers(body, kind):
    """Reading ends in an object or in ProtobufError, whatever the bytes."""
    try:
        obj, _ = READER.object_in(body, kind)
    except ProtobufError:
        return
    assert obj["kind"]


KINDS = sorted({(row.api_version, row.kind) for row in rows_of()})


@given(st.binary(max_size=80), st.sampled_from(KINDS))
def test_no_bytes_break_the_reader(data, kind):
    unknown = T["t.Unknown"](raw=data)
    for body in (data, MAGIC + data, MAGIC + unknown.SerializeToString()):
        answers(body, kind)


# Fields upon fields with small numbers: random bytes alone rarely get past the first.
FIELDS = st.recursive(
    st.binary(max_size=6),
    lambda inner: st.lists(st.tuples(st.integers(1, 30), inner | st.integers(0, 2**64 - 1))).map(
        lambda fields: b"".join(
            length(number << 3 | 2) + length(len(value)) + value
            if isinstance(value, bytes)
            else length(number << 3) + length(value)
            for number, value in fields
        )
    ),
    max_leaves=20,
)


@pytest.mark.slow
@given(FIELDS, st.sampled_from(KINDS))
@settings(max_examples=200)
def test_no_fields_break_the_reader(data, kind):
    answers(MAGIC + T["t.Unknown"](raw=data).SerializeToString(), kind)


@given(st.data())
def test_a_damaged_body_is_read_or_refused(data):
    pod = T["t.Pod"]()
    pod.metadata.name, pod.metadata.creationTimestamp.seconds = "web", 1_700_000_000
    pod.metadata.labels.add(key="app", value="a")
    main = pod.spec.containers.add(name="main", image="app:1", command=["sh"])
    main.livenessProbe.handler.httpGet.port.intVal = 80
    body = bytearray(wrapped("Pod", pod))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    answers(bytes(body[: data.draw(st.integers(4, len(body)))]), ("v1", "Pod"))


def reachable(schema, minor):
    """Every definition that may be inside of a body."""
    kinds = {("v1", "DeleteOptions"), ("v1", "Status")}
    for row in rows_of(minor):
        kinds.add((row.api_version, row.kind))
        for sub in row.subresources:
            group = f"{sub.group}/{sub.version}" if sub.group else sub.version
            kinds.add((group, sub.kind))
    waiting = [name for kind in kinds if (name := schema.name_of(*kind))]
    found = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            for kind in schema.fields_of(name).values():
                while kind.element is not None:
                    kind = kind.element
                if kind.shape == "object":
                    waiting.append(kind.name)
    return sorted(found)


@pytest.mark.parametrize("minor", MINORS)
def test_every_field_that_a_body_may_have_has_a_number(minor):
    """[A11] Kind and version of a body lie outside of its message."""
    schema = Schema.load(minor)
    with features.used(Release(minor)):
        messages = load_messages()
    for name in reachable(schema, minor):
        numbered = [token.rstrip("!?") for token in own_tokens(messages, name)]
        assert len(numbered) == len(set(numbered)), name
        fields = set(schema.fields_of(name))
        assert fields - set(numbered) <= {"apiVersion", "kind"}, name
        assert set(numbered) - fields == set(), name
