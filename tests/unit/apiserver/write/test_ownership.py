"""Who writes through which door. [A7]"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api import features
from sampan.api.calls import Call, Options
from sampan.api.errors import ApiError, BadRequest, Failure, Invalid
from sampan.api.features import Release
from sampan.api.kinds import Kinds
from sampan.api.objects import copy_of
from sampan.api.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, PODS
from sampan.api.schema.published import Schema
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.ownership import Ownership, check_options, settle

SCHEMA = Schema.load()
OWNERSHIP = Ownership(SCHEMA, Kinds())
NOW = 1_700_000_000.0


def config_map(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def created(user="me", agent="", manager=""):
    obj = config_map(a="1")
    call = Call("create", CONFIG_MAPS, "x", options=Options(field_manager=manager), agent=agent)
    OWNERSHIP.created(User(user), call, obj, NOW)
    return obj["metadata"]["managedFields"][0]


@pytest.mark.parametrize(
    ("user", "agent", "manager", "named"),
    [
        ("me", "kubectl/v1.32", "given", "given"),
        ("me", "kubectl/v1.32", "", "kubectl"),
        ("system:kube-scheduler", "", "", "kube-scheduler"),
        ("system:node:n1", "", "", "kubelet"),
        ("", "", "", "unknown"),
    ],
)
def test_a_writer_is_named_by_itself_its_agent_or_its_user(user, agent, manager, named):
    entry = created(user, agent, manager)
    assert (entry["manager"], entry["time"]) == (named, "2023-11-14T22:13:20Z")


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.dictionaries(st.sampled_from("ab"), st.sampled_from("cd"))
        ),
        max_size=6,
    )
)
def test_what_is_remembered_of_others_is_what_would_have_been_found(made):
    known = Ownership(SCHEMA, Kinds())
    call = Call("create", CONFIG_MAPS, "x", options=Options(field_manager="me"))
    for name, data in made:
        one, two = config_map(**data), config_map(**data)
        one["metadata"]["name"] = two["metadata"]["name"] = name
        known.created(User("me"), call, one, NOW)
        Ownership(SCHEMA, Kinds()).created(User("me"), call, two, NOW)
        assert one == two


def written(resource, subresource, old, new):
    call = Call("update", resource, "x", "a", subresource, options=Options(field_manager="you"))
    OWNERSHIP.updated(User("me"), call, new, old, NOW)
    entries = new["metadata"].get("managedFields", ())
    return {one["manager"]: one["fieldsV1"] for one in entries}


def deployment(replicas, ready, **meta):
    entry = {"manager": "me", "operation": "Update", "apiVersion": "apps/v1"}
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = {"f:spec": {"f:replicas": {}}, "f:status": {"f:readyReplicas": {}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "managedFields": [entry], **meta},
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready},
    }


FIELDS = st.recursive(
    st.sampled_from(["", "x", 0, 1, True]),
    lambda inner: st.dictionaries(st.sampled_from(["labels", "annotations", "a", "b"]), inner),
    max_leaves=5,
)


@settings(max_examples=30)
@given(st.lists(st.dictionaries(st.sampled_from(["metadata", "data", "immutable"]), FIELDS)))
def test_objects_with_the_same_fields_are_owned_alike_whatever_they_say(sent):
    """Each is looked at by one who remembers those before it, and by one who does not."""
    known = Ownership(SCHEMA, Kinds())
    call = Call("create", CONFIG_MAPS, "x", options=Options(field_manager="me"))
    for parts in sent:
        body = {**config_map(), **parts}
        body["metadata"] = (
            {"name": "a", **(parts["metadata"] or {})}
            if isinstance(parts.get("metadata"), dict)
            else {"name": "a"}
        )
        try:
            one = SCHEMA.check("v1", "ConfigMap", body).obj
        except ApiError:
            continue
        one |= {"apiVersion": "v1", "kind": "ConfigMap"}
        two = copy_of(one)
        known.created(User("me"), call, one, NOW)
        Ownership(SCHEMA, Kinds()).created(User("me"), call, two, NOW)
        assert one == two


def test_the_main_door_does_not_change_the_status():
    assert written(DEPLOYMENTS, "", deployment(1, 1), deployment(2, 2)) == {
        "me": {"f:status": {"f:readyReplicas": {}}},
        "you": {"f:spec": {"f:replicas": {}}},
    }


def test_the_status_door_changes_only_the_status_and_some_metadata():
    new = deployment(2, 2, labels={"a": "b"}, annotations={"c": "d"})
    assert written(DEPLOYMENTS, "status", deployment(1, 1), new) == {
        "me": {"f:spec": {"f:replicas": {}}},
        "you": {
            "f:metadata": {"f:annotations": {".": {}, "f:c": {}}},
            "f:status": {"f:readyReplicas": {}},
        },
    }


def test_a_binding_makes_nobody_an_owner():
    old = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}
    new = {**old, "metadata": {"name": "a"}, "spec": {"nodeName": "n"}}
    assert written(PODS, "binding", old, new) == {}


def test_a_copy_that_a_binding_makes_shares_its_sets_of_fields_again():
    entry = created("", "", "unknown")
    first, second = (
        written(
            PODS, "binding", {"metadata": {}}, {"metadata": {"managedFields": [copy_of(entry)]}}
        )
        for _ in range(2)
    )
    assert first["unknown"] is second["unknown"]


def test_a_write_that_only_changes_a_time_changes_nothing():
    old = deployment(1, 1)
    new = deployment(1, 1)
    new["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    settle(new, old)
    assert new == old
    new = deployment(2, 1)
    new["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    settle(new, old)
    assert new["metadata"]["managedFields"][0]["time"] == "2030-01-01T00:00:00Z"


def applying(body, **options):
    options = Options(patch_type="apply", field_manager="me", **options)
    return Call("patch", CONFIG_MAPS, "x", "a", body=body, options=options)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ([], "cannot unmarshal array"),
        ({**config_map(), "apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
        ({**config_map(), "kind": "Pod"}, "invalid object type: /v1, Kind=Pod"),
        ({**config_map(), "oops": 1}, r"\.oops: field not declared in schema"),
    ],
)
def test_configurations_that_cannot_be_applied(body, why):
    with pytest.raises((BadRequest, Failure), match=why):
        OWNERSHIP.applied(User("me"), applying(body), {}, [], NOW)


def test_fields_that_are_there_twice_are_told_or_refused():
    body = config_map(a="1")
    warnings: list[str] = []
    call = applying(body)
    told = Call(
        call.verb, call.resource, "x", "a", body=body, options=call.options, problems=("twice",)
    )
    OWNERSHIP.applied(User("me"), told, {}, warnings, NOW)
    assert warnings == ["twice"]
    strict = applying(body, field_validation="Strict")
    strict = Call(
        "patch", CONFIG_MAPS, "x", "a", body=body, options=strict.options, problems=("twice",)
    )
    for minor, where in (("1.36", "YAML"), ("1.37", "patch")):
        with (
            features.used(Release(minor)),
            pytest.raises(BadRequest, match=f"error strict decoding {where}"),
        ):
            OWNERSHIP.applied(User("me"), strict, {}, [], NOW)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (Options(patch_type="apply"), "fieldManager"),
        (Options(patch_type="merge", force=True), "force"),
        (Options(patch_type="merge", field_manager="x" * 129), "fieldManager"),
    ],
)
def test_options_of_a_patch_are_checked(options, field):
    with pytest.raises(Invalid) as caught:
        check_options(Call("patch", CONFIG_MAPS, options=options))
    assert [cause["field"] for cause in caught.value.details["causes"]] == [field]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)  # what is larger is read as a float
    | st.floats()
    | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "image", "ports", "containerPort", "protocol", "x", "a"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
SPECS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("containers", "volumes", "tolerations", "nodeName"), ANYTHING)
)


@pytest.mark.slow
@given(SPECS, SPECS, st.dictionaries(st.sampled_from(["labels", "finalizers", "name"]), ANYTHING))
def test_whatever_is_applied_is_taken_or_refused(first, second, meta):
    live = {}
    for spec in (first, second):
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        options = Options(patch_type="apply", field_manager="me", force=True)
        call = Call("patch", PODS, "x", "a", body=body, options=options)
        try:
            live = OWNERSHIP.applied(User("me"), call, live, [], NOW)
        except ApiError:
            continue


@pytest.mark.slow
@given(st.lists(st.dictionaries(
    st.sampled_from(["manager", "operation", "fieldsType", "fieldsV1", "apiVersion"]),
    st.sampled_from(["Apply", "Update", "FieldsV1", "v1", {"f:data": {"f:a": {}}}, {"k:{": {}}]),
)))  # fmt: skip
def test_whatever_is_sent_as_entries_is_answered(entries):
    old, new = config_map(a="1"), config_map(a="2")
    OWNERSHIP.created(User("me"), Call("create", CONFIG_MAPS, "x"), old, NOW)
    new["metadata"]["managedFields"] = entries
    try:
        checked = SCHEMA.check("v1", "ConfigMap", new).obj
    except ApiError:
        return
    new = {**checked, "apiVersion": "v1", "kind": "ConfigMap"}
    assert "you" in written(CONFIG_MAPS, "", old, new) or entries == [{}]


def test_what_was_not_said_is_nobodys():
    """Go writes some fields of which nothing was said: an original's maker does not own them."""
    about = {"involvedObject": {"kind": "Pod", "namespace": "a"}, "source": {}}
    unsaid = {"eventTime": None, "firstTimestamp": None, "lastTimestamp": None}
    unsaid |= {"reportingComponent": "", "reportingInstance": ""}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, **about}
    assert owned(event | unsaid) == {"f:involvedObject": {}}
    said = owned(event | unsaid | {"reportingComponent": "me"})
    assert said == {"f:involvedObject": {}, "f:reportingComponent": {}}


def owned(event):
    OWNERSHIP.created(User("me"), Call("create", EVENTS), event, NOW)
    return event["metadata"]["managedFields"][0]["fieldsV1"]
