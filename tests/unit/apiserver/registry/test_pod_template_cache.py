"""Pod template cache: what is remembered is what the long way finds."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.calls import Call, Options
from sampan.api.defaults import apply_defaults
from sampan.api.kinds import Kinds
from sampan.api.objects import copy_of
from sampan.api.resources import PODS
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.pod_template_cache import PodTemplateCache
from sampan.apiserver.write.decoding import decode_body, decode_with_spec
from sampan.apiserver.write.ownership import Ownership

SCHEMA = Schema.load()
OWNERSHIP = Ownership(SCHEMA, Kinds())
NOW = 1_700_000_000.0
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab"), "image": st.sampled_from(["app", "app:1"])},
        optional={
            "resources": st.just({"limits": {"cpu": "1000m", "memory": "1024Mi"}}),
            "ports": st.just([{"containerPort": 80}]),
            "env": st.just([{"name": "A", "value": "1"}, {"name": "B"}]),
            "command": st.just([]),
            "workingDir": st.none(),
        },
    ),
    max_size=2,
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "initContainers": CONTAINERS,
        "restartPolicy": st.sampled_from(["", "Never"]),
        "nodeSelector": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12")),
        "hostNetwork": st.booleans(),
    },
)
METADATA = st.fixed_dictionaries(
    {"name": st.sampled_from("ab")},
    optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
        "ownerReferences": st.just(
            [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}]
        ),
    },
)


def call_of(body, **options):
    return Call("create", PODS, "x", body=body, options=Options(**options))


def seen_often(cache, call):
    return [cache.decoded(call) for _ in range(3)]


@settings(max_examples=40)
@given(SPECS, METADATA)
def test_a_spec_that_came_before_makes_the_same_pod(spec, metadata):
    cache = PodTemplateCache(SCHEMA, OWNERSHIP.fields_of_new)
    call = call_of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    first, second, third = seen_often(cache, call)
    assert first is None
    assert second is third is not None
    long_way = decode_body(SCHEMA, call, [])
    apply_defaults(PODS, long_way)
    OWNERSHIP.created(User("me"), call, long_way, NOW)
    short_way = decode_with_spec(SCHEMA, call, third.text, [])
    OWNERSHIP.created(User("me"), call, short_way, NOW, third.fields)
    assert orjson.dumps(short_way) == orjson.dumps(long_way)


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "a", "isNotKnown": 1}]},
        {"containers": [{"name": 1}]},
        {"containers": "none"},
        {},
        None,
        "text",
        {"containers": [{"name": "\ud800"}]},
    ],
)
def test_a_spec_of_which_something_is_to_be_said_is_always_read_anew(spec):
    cache = PodTemplateCache(SCHEMA, OWNERSHIP.fields_of_new)
    assert seen_often(cache, call_of({"metadata": {"name": "a"}, "spec": spec})) == [None] * 3


def test_what_is_applied_is_read_anew():
    cache = PodTemplateCache(SCHEMA, OWNERSHIP.fields_of_new)
    body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}
    assert seen_often(cache, call_of(body, patch_type="apply")) == [None] * 3
    assert seen_often(cache, call_of("text")) == [None] * 3


@settings(max_examples=40)
@given(SPECS, SPECS, st.sampled_from([None, {"a": "b"}]), st.sampled_from([None, {"a": "c"}]))
def test_only_the_same_spec_with_the_same_annotations_is_known_to_be_valid(one, two, its, others):
    cache = PodTemplateCache(SCHEMA, OWNERSHIP.fields_of_new)

    def pod(spec, annotations, name):
        return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}

    valid = {**pod(one, its, "a"), "status": {"qosClass": "Burstable"}}
    for _ in range(2):
        cache.remember_valid(cache.validation_key(valid), valid)
    other = pod(copy_of(one), its, "b")
    assert cache.prepare_valid(cache.validation_key(other), other) == []
    assert other["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    same = orjson.dumps([one, its]) == orjson.dumps([two, others])
    third = pod(two, others, "a")
    known = cache.prepare_valid(cache.validation_key(third), third)
    assert (known is not None) is ("status" in third) is same


def test_what_depends_on_more_than_the_spec_is_not_known():
    cache = PodTemplateCache(SCHEMA, OWNERSHIP.fields_of_new)
    gated = {"containers": [{"name": "a"}], "schedulingGates": [{"name": "a/b"}]}
    assert cache.validation_key({"metadata": {}, "spec": gated}) is None
    spread = {"containers": [{"name": "a"}], "topologySpreadConstraints": [{"matchLabelKeys": "a"}]}
    assert cache.validation_key({"metadata": {}, "spec": spread}) is None
    assert cache.prepare_valid(None, {"metadata": {"name": "a"}}) is None
