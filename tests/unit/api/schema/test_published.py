"""Types from the published definitions, and objects checked against them."""

import sys

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import BadRequest
from sampan.api.objects import copy_of
from sampan.api.schema.published import NotHandled, Schema, strict_error
from sampan.version import MINORS
from tests.support.releases import rows_of

SCHEMA = Schema.load()


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def refusal(obj, api_version="v1", kind="Pod"):
    with pytest.raises(BadRequest) as caught:
        SCHEMA.check(api_version, kind, obj)
    return caught.value.message


@pytest.mark.parametrize("minor", MINORS)
def test_every_kind_of_the_table_has_a_definition(minor):
    """[A5] ComponentStatus and Binding too."""
    schema = Schema.load(minor)
    missing = [
        (row.api_version, row.kind)
        for row in rows_of(minor)
        if schema.type_of(row.api_version, row.kind) is None
    ]
    assert missing == []
    assert schema.version == f"v{minor}.0"
    assert schema.names() == sorted(schema.names())


def test_a_version_has_its_own_types_and_texts():
    """[V1] What a version adds, changes and no longer has."""
    of = {minor: Schema.load(minor) for minor in MINORS}
    policy = ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy")
    assert [minor for minor in MINORS if of[minor].name_of(*policy)] == ["1.36", "1.37"]
    workload = ("scheduling.k8s.io/v1alpha1", "Workload")
    assert [minor for minor in MINORS if of[minor].name_of(*workload)] == ["1.35"]
    spec = "io.k8s.api.core.v1.PodSpec"
    assert "schedulingGroup" not in of["1.35"].fields_of(spec)
    assert "schedulingGroup" in of["1.36"].explanations()[spec][1]
    assert "workloadRef" in of["1.35"].explanations()[spec][1]
    assert "workloadRef" not in of["1.36"].explanations()[spec][1]


def test_fields_say_how_lists_merge():
    spec = SCHEMA.fields_of("io.k8s.api.core.v1.ServiceSpec")["ports"]
    assert (spec.shape, spec.list_type, spec.map_keys) == ("list", "map", ("port", "protocol"))
    assert (spec.merge_key, spec.strategies) == ("port", ("merge",))
    volumes = SCHEMA.fields_of("io.k8s.api.core.v1.PodSpec")["volumes"]
    assert volumes.strategies == ("merge", "retainKeys")
    kind = SCHEMA.type_of("apps/v1", "Deployment")
    strategy = SCHEMA.field(SCHEMA.field(kind, "spec"), "strategy")
    assert strategy.strategies == ("retainKeys",)
    assert SCHEMA.field(strategy, "nothing") is None


def test_unknown_fields_are_dropped_and_named():
    """[A4]"""
    given_pod = pod(containers=[{"name": "a", "imagee": 1}], foo={"x": 1}, Containers=[])
    before = copy_of(given_pod)
    checked = SCHEMA.check("v1", "Pod", given_pod)
    assert checked.obj == {**pod(containers=[{"name": "a", "resources": {}}]), "status": {}}
    assert checked.unknown == [
        'unknown field "spec.containers[0].imagee"',
        'unknown field "spec.foo"',
        'unknown field "spec.Containers"',
    ]
    assert given_pod == before


def test_nulls_are_dropped_from_objects_and_become_zeros_in_lists_and_maps():
    obj = pod(containers=[None], nodeName=None)
    obj["metadata"] = {"creationTimestamp": None, "labels": {"a": None}}
    assert SCHEMA.check("v1", "Pod", obj).obj == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"a": ""}},
        "spec": {"containers": [{"name": "", "resources": {}}]},
        "status": {},
    }


def test_what_go_always_writes_is_there():
    """[A4] No omitempty, or held by value."""
    deployment = SCHEMA.check("apps/v1", "Deployment", {}).obj
    assert deployment["status"] == {}
    assert deployment["spec"]["strategy"] == {}
    assert deployment["spec"]["template"] == {"metadata": {}, "spec": {"containers": None}}
    assert SCHEMA.zero("v1", "Service")["status"] == {"loadBalancer": {}}
    assert SCHEMA.zero("rbac.authorization.k8s.io/v1", "Role")["rules"] is None
    condition = SCHEMA.check("v1", "Pod", {"status": {"conditions": [{"type": "A"}]}}).obj
    assert condition["status"]["conditions"] == [
        {"type": "A", "status": "", "lastProbeTime": None, "lastTransitionTime": None}
    ]


def test_what_go_never_writes_is_not():
    """[A4] The zero of a field with omitempty, unless it is held by pointer."""
    container = {"name": "a", "env": [], "stdin": False, "image": "", "args": ["", "x"]}
    container["volumeMounts"] = [{"name": "v", "mountPath": "/", "readOnly": False}]
    container["securityContext"] = {"privileged": False, "capabilities": {}}
    spec = {"minReadySeconds": 0, "replicas": 0, "template": {"spec": {"containers": [container]}}}
    found = SCHEMA.check("apps/v1", "Deployment", {"spec": spec}).obj["spec"]
    assert found["replicas"] == 0
    assert "minReadySeconds" not in found
    assert found["template"]["spec"]["containers"] == [
        {
            "name": "a",
            "args": ["", "x"],
            "resources": {},
            "securityContext": {"privileged": False, "capabilities": {}},
            "volumeMounts": [{"name": "v", "mountPath": "/"}],
        }
    ]


def test_what_was_put_together_of_maps_is_read_more_kindly():
    """[A10] As Go's converter of unstructured objects: numbers become what is wanted."""
    sent = {"spec": {"replicas": 2.0, "minReadySeconds": 2**32 + 5}}
    found = SCHEMA.check_unstructured("apps/v1", "Deployment", sent).obj
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["minReadySeconds"] == 5


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("x", "cannot restore struct from: string"),
        ({"replicas": 1.5}, "cannot convert float64 to int32"),
        ({"replicas": "1"}, "unrecognized type: int32"),
        ({"template": {"spec": {"containers": {}}}}, "cannot restore slice from map"),
        ({"template": {"spec": {"nodeSelector": []}}}, "cannot restore map from slice"),
        ({"template": {"spec": {"nodeName": 1}}}, "cannot convert int64 to string"),
    ],
)
def test_what_maps_cannot_become_is_said_in_the_converters_words(spec, why):
    with pytest.raises(NotHandled) as caught:
        SCHEMA.check_unstructured("apps/v1", "Deployment", {"spec": spec})
    assert caught.value.why == why


@given(st.sampled_from([row for row in rows_of() if row.group in ("", "apps", "batch")]))
def test_the_form_of_go_is_its_own_form(row):
    """[A4]"""
    zero = SCHEMA.zero(row.api_version, row.kind)
    assert SCHEMA.check(row.api_version, row.kind, zero).obj == zero


def test_quantities_and_times_get_their_one_spelling():
    resources = {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": 0.5}}
    obj = pod(containers=[{"resources": resources}])
    obj["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05.678+02:00"
    checked = SCHEMA.check("v1", "Pod", obj).obj
    assert checked["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m"},
    }
    assert checked["metadata"]["creationTimestamp"] == "2026-01-02T01:04:05Z"
    lease = {"spec": {"renewTime": "2026-01-02T03:04:05.000006+02:00"}}
    checked = SCHEMA.check("coordination.k8s.io/v1", "Lease", lease).obj
    assert checked["spec"]["renewTime"] == "2026-01-02T01:04:05.000006Z"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2026-01-02T03:04:05Z", 'cannot parse "Z" as ".000000"'),
        ("2026-01-02T03:04:05.5Z", 'cannot parse ".5Z" as ".000000"'),
        ("2026-01-02", 'cannot parse "" as "T"'),
        ("", 'cannot parse "" as "2006"'),
    ],
)
def test_of_a_time_the_first_wrong_part_is_told(text, why):
    layout = "2006-01-02T15:04:05.000000Z07:00"
    told = refusal({"spec": {"renewTime": text}}, "coordination.k8s.io/v1", "Lease")
    assert told.endswith(f'parsing time "{text}" as "{layout}": {why}')


def test_bytes_may_be_told_one_by_one():
    checked = SCHEMA.check("v1", "ConfigMap", {"binaryData": {"a": [97, None, 255]}}).obj
    assert checked["binaryData"] == {"a": "YQD/"}
    assert refusal({"binaryData": {"a": ["x"]}}, kind="ConfigMap").endswith(
        "json: cannot unmarshal string into Go struct field ConfigMap.binaryData of type uint8"
    )
    assert refusal({"binaryData": {"a": [256]}}, kind="ConfigMap").endswith(
        "json: cannot unmarshal number 256 into Go struct field ConfigMap.binaryData of type uint8"
    )


def test_bytes_are_base64_without_line_ends():
    assert (
        SCHEMA.check("v1", "Secret", {"data": {"a": "YWJj\nZA=="}}).obj["data"]["a"] == "YWJjZA=="
    )
    assert refusal({"data": {"a": "a*b"}}, kind="Secret") == (
        'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 1'
    )


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (pod(containers=[{"image": 3}]),
         "number into Go struct field Container.spec.containers.image of type string"),
        (pod(containers={}),
         "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (pod(containers=["x"]),
         "string into Go struct field PodSpec.spec.containers of type v1.Container"),
        (pod(activeDeadlineSeconds=1.5),
         "number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64"),
        (pod(priority=2**31),
         "number 2147483648 into Go struct field PodSpec.spec.priority of type int32"),
        (pod(priority=True), "bool into Go struct field PodSpec.spec.priority of type int32"),
        (pod(hostNetwork="yes"),
         "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        ({"metadata": {"labels": {"a": 1}}},
         "number into Go struct field ObjectMeta.metadata.labels of type string"),
        ({"metadata": {"labels": "a"}},
         "string into Go struct field ObjectMeta.metadata.labels of type map[string]string"),
        ({"spec": []}, "array into Go struct field Pod.spec of type v1.PodSpec"),
        ([], "array into Go value of type v1.Pod"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_refused_in_upstreams_words(obj, why):
    """[A4]"""
    wording = 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal '
    assert refusal(obj) == wording + why


def test_self_decoding_types_word_their_own_refusals():
    port = {"readinessProbe": {"httpGet": {"port": True}}}
    assert refusal(pod(containers=[port])).endswith(
        "json: cannot unmarshal bool into Go struct field "
        "HTTPGetAction.spec.containers.readinessProbe.ProbeHandler.httpGet.port of type int32"
    )
    limits = {"resources": {"limits": {"cpu": "a lot"}}}
    assert "quantities must match the regular expression" in refusal(pod(containers=[limits]))
    assert 'parsing time "2020" as "2006-01-02T15:04:05Z07:00"' in refusal(
        {"metadata": {"creationTimestamp": "2020"}}
    )


def test_ports_may_be_numbers_or_names():
    for port in (80, "http"):
        obj = pod(containers=[{"livenessProbe": {"tcpSocket": {"port": port}}}])
        probe = SCHEMA.check("v1", "Pod", obj).obj["spec"]["containers"][0]["livenessProbe"]
        assert probe["tcpSocket"] == {"port": port}


def test_free_form_parts_pass_as_they_are():
    schema = {"properties": {"x": {"items": {"type": "object"}, "default": {"anything": [None]}}}}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    checked = SCHEMA.check("apiextensions.k8s.io/v1", "CustomResourceDefinition", obj)
    assert checked.obj["spec"]["versions"][0]["schema"] == {"openAPIV3Schema": schema}
    assert checked.unknown == []


def test_an_object_that_is_nested_beyond_measure_is_refused():
    deep = {"type": "object"}
    for _ in range(sys.getrecursionlimit()):
        deep = {"items": deep}
    obj = {"spec": {"versions": [{"schema": {"openAPIV3Schema": deep}}]}}
    why = refusal(obj, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert why.endswith(": exceeded max depth")


def test_a_strict_refusal_lists_every_problem():
    error = strict_error("apps/v1", "Deployment", ['unknown field "a"', 'duplicate field "b"'])
    assert error.code == 400
    assert error.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: '
        'unknown field "a", duplicate field "b"'
    )


def test_prose_is_there_for_explain():
    text, fields = SCHEMA.explanations()["io.k8s.api.core.v1.Container"]
    assert text.startswith("A single application container")
    assert "image" in fields


KEYS = st.sampled_from(
    ["metadata", "spec", "containers", "name", "labels", "image", "status", "x", "replicas", "env",
     "template", "resources", "limits", "value", "creationTimestamp", "data"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "1", "1Gi", "YQ=="])
TREES = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@given(st.sampled_from([("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Secret")]), TREES)
def test_what_was_decoded_decodes_to_itself(kind, tree):
    """The decoder's invariant, for whatever is accepted at all."""
    try:
        once = SCHEMA.check(*kind, tree)
    except BadRequest:
        return
    again = SCHEMA.check(*kind, once.obj)
    assert again.obj == once.obj
    assert again.unknown == []


_MAYBE_TEXT = st.sampled_from(["a", "", None])
_MAYBE_TIME = st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", None])


def _struct(**fields):
    """Some of the fields, in any order."""
    return st.lists(st.sampled_from(sorted(fields)), unique=True).flatmap(
        lambda keys: st.fixed_dictionaries({key: fields[key] for key in keys})
    )


_POD_STATUS = _struct(
    phase=_MAYBE_TEXT,
    message=_MAYBE_TEXT,
    startTime=_MAYBE_TIME,
    observedGeneration=st.sampled_from([0, 1, None]),
    podIPs=st.lists(_struct(ip=_MAYBE_TEXT), max_size=2) | st.none(),
    conditions=st.lists(
        _struct(
            type=_MAYBE_TEXT, status=_MAYBE_TEXT, lastProbeTime=_MAYBE_TIME, reason=_MAYBE_TEXT
        ),
        max_size=2,
    ),
    containerStatuses=st.lists(
        _struct(
            name=_MAYBE_TEXT,
            ready=st.sampled_from([True, False, None]),
            restartCount=st.sampled_from([0, 3, None]),
            started=st.sampled_from([True, False, None]),
            image=_MAYBE_TEXT,
            state=_struct(running=_struct(startedAt=_MAYBE_TIME) | st.none()),
        ),
        max_size=2,
    ),
)


def _with_a_field_that_is_not_known(value):
    """In every struct, so that none is like one that was read before."""
    if isinstance(value, list):
        return [_with_a_field_that_is_not_known(item) for item in value]
    if isinstance(value, dict):
        known = {key: _with_a_field_that_is_not_known(item) for key, item in value.items()}
        return {**known, "isNotKnown": 1}
    return value


@settings(max_examples=40)
@given(_POD_STATUS)
def test_what_is_read_does_not_depend_on_what_was_read_before(status):
    body = {"metadata": {"name": "a"}, "status": status}
    found = [orjson.dumps(SCHEMA.check("v1", "Pod", body).obj) for _ in range(2)]
    strange = SCHEMA.check("v1", "Pod", _with_a_field_that_is_not_known(body))
    assert strange.unknown
    assert found == [orjson.dumps(strange.obj)] * 2


@given(st.sampled_from(["phase", "message", "reason"]), st.sampled_from([1, True, [], {}]))
def test_a_text_of_the_wrong_type_is_refused_after_good_ones(key, wrong):
    SCHEMA.check("v1", "Pod", {"status": {key: "good"}})
    wanted = r"v1\.PodPhase" if key == "phase" else "string"
    with pytest.raises(BadRequest, match=rf"PodStatus\.status\.{key} of type {wanted}"):
        SCHEMA.check("v1", "Pod", {"status": {key: wrong}})
