import pytest

from sampan.api.configuration import BadConfiguration
from sampan.controllers.stages.stage import Deleted, Finalizers, Patched, StageEvent
from sampan.controllers.stages.stage_file import stages_of


def document(name="s", **spec):
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "apps/v1", "kind": "Deployment"}, **spec},
    }  # fmt: skip


def problems(*documents):
    with pytest.raises(BadConfiguration) as caught:
        stages_of(documents)
    return caught.value.problems


def test_next_is_read_as_steps_in_kwoks_order():
    [stage] = stages_of(
        [
            document(
                next={
                    "delete": True,
                    "statusTemplate": "phase: Gone",
                    "finalizers": {"empty": True},
                    "event": {"reason": "R", "message": "M"},
                }
            )
        ]
    )
    assert [type(step) for step in stage.steps] == [StageEvent, Finalizers, Patched, Deleted]
    patched = stage.steps[2]
    assert (patched.root, patched.subresource, patched.type) == ("status", "status", "")
    assert (stage.api_version, stage.kind) == ("apps/v1", "Deployment")
    assert stage.selector is None


def test_patches_of_next_take_the_place_of_its_template():
    [stage] = stages_of(
        [
            document(
                next={
                    "statusTemplate": "phase: Gone",
                    "patches": [{"template": "spec: {}", "type": "merge"}, {"template": "a: b"}],
                }
            )
        ]
    )
    assert [step.type for step in stage.steps] == ["merge", ""]


def test_everything_that_is_wrong_is_told_with_its_place():
    assert problems(
        document(
            "one",
            selector={
                "matchExpressions": [
                    {"key": ".a | map(.b)", "operator": "In", "values": ["x"]},
                    {"key": ".a", "operator": "Like"},
                    {"key": ".a", "operator": "In"},
                    {"key": ".a", "operator": "Exists", "values": ["x"]},
                    {"cel": {"expression": "other.a"}},
                ]
            },
            weight=-1,
            next={"statusTemplate": "{{ frobnicate . }}", "statusPatchAs": {"username": "u"}},
            colour="red",
        ),
        document("two", steps=[{"patch": {"template": "a: b", "type": "yaml"}}, {"sleep": 1}]),
        {"apiVersion": "v1", "kind": "Pod"},
        document("two"),
    ) == [
        "one: spec.colour: unknown field",
        "one: spec.selector.matchExpressions[0].key: 'map' in the query '.a | map(.b)' is not "
        "understood",
        "one: spec.selector.matchExpressions[1].operator: 'Like' is none of In, NotIn, Exists, "
        "DoesNotExist",
        "one: spec.selector.matchExpressions[2].values: must be there with the operator In",
        "one: spec.selector.matchExpressions[3].values: must not be there with the operator Exists",
        "one: spec.selector.matchExpressions[4].cel: 'other.a': undeclared reference to 'other' "
        "(in container '')",
        "one: spec.next.statusPatchAs: impersonation is not there: leave it out",
        'one: spec.next.statusTemplate: template: output:1: function "frobnicate" not defined',
        "one: spec.weight: -1 is no whole number from 0 on",
        "two: spec.steps[0].patch.type: 'yaml' is none of json, merge, strategic",
        "two: spec.steps[1].sleep: unknown field",
        "document 3: v1, Pod is no Stage of kwok.x-k8s.io/v1alpha1",
    ]


def test_names_are_given_once():
    assert problems(document("a"), document("a")) == ["a: there are two of this name"]
    assert "metadata.name: is missing" in problems(document(""))[0]
