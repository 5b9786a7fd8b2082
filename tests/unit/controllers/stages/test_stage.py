import random

import pytest

from sampan.controllers.stages.stage import Finalizers, chosen, finalizer_operations, stays_seconds
from sampan.controllers.stages.stage_file import stage_of
from tests.support.seed import drawn

NOW = 1_700_000_000.0
FROM = {"expressionFrom": '.metadata.annotations["d"]'}
JITTER = {"expressionFrom": '.metadata.annotations["j"]'}


def stage(name="s", *, selector=None, **spec):
    return stage_of(
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Stage",
            "metadata": {"name": name},
            "spec": {"resourceRef": {"kind": "Thing"}, "selector": selector or {}, **spec},
        }
    )


def thing(labels=None, **annotations):
    return {"metadata": {"labels": labels or {}, "annotations": annotations}}


def test_a_stage_without_a_selector_is_of_no_object_and_an_empty_one_of_all():
    assert chosen([stage()], thing(), drawn()).name == "s"
    without = stage_of(
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": "s"},
            "spec": {"resourceRef": {"kind": "Thing"}},
        }
    )  # fmt: skip
    assert chosen([without], thing(), drawn()) is None


def test_all_parts_of_a_selector_must_fit():
    wanted = stage(
        selector={
            "matchLabels": {"a": "1"},
            "matchAnnotations": {"b": "2"},
            "matchExpressions": [
                {"key": ".spec.n", "operator": "In", "values": ["3", "true"]},
                {"cel": {"expression": "self.spec.n == 3"}},
            ],
        }
    )
    fits = {**thing({"a": "1"}, b="2"), "spec": {"n": 3}}
    assert chosen([wanted], fits, drawn()) is wanted
    for wrong in (
        {**fits, "spec": {"n": 4}},
        {**fits, "spec": {}},
        {**fits, "metadata": {"labels": {"a": "1"}}},
        {**fits, "metadata": {"annotations": {"b": "2"}}},
        {**fits, "spec": {"n": True}},
    ):
        assert chosen([wanted], wrong, drawn()) is None


def test_of_several_stages_one_is_drawn_by_weight():
    often = stage("often", weight=3)
    rarely = stage("rarely", weight=1, weightFrom={"expressionFrom": ".metadata.annotations.w"})
    never = stage("never", weight=0)
    rng = drawn()
    drawn_names = [chosen([often, rarely, never], thing(), rng).name for _ in range(4000)]
    assert drawn_names.count("never") == 0
    assert 0.6 < drawn_names.count("often") / len(drawn_names) < 0.9
    assert chosen([often, rarely], thing(w="0"), drawn()) is often
    assert chosen([often, rarely], thing(w="x"), drawn()) is often
    assert chosen([stage("a"), stage("b")], thing(), drawn()).name in ("a", "b")


@pytest.mark.parametrize(
    ("delay", "annotations", "least", "most"),
    [
        (None, {}, 0, 0),
        ({"durationMilliseconds": 1500}, {}, 1.5, 1.5),
        ({"durationMilliseconds": 1500, "durationFrom": FROM}, {"d": "1m"}, 60, 60),
        ({"durationMilliseconds": 1500, "durationFrom": FROM}, {"d": "soon"}, 1.5, 1.5),
        ({"durationFrom": FROM}, {"d": "2023-11-14T22:13:50Z"}, 30, 30),
        ({"durationFrom": FROM}, {"d": "2023-11-14T22:13:10Z"}, 0, 0),
        ({"durationFrom": {"cel": {"expression": "duration('2m')"}}}, {}, 120, 120),
        ({"durationMilliseconds": 1000, "jitterDurationMilliseconds": 5000}, {}, 1, 5),
        ({"durationMilliseconds": 1000, "jitterDurationMilliseconds": 500}, {}, 0.5, 0.5),
        ({"durationMilliseconds": 1000, "jitterDurationFrom": JITTER}, {"j": "3s"}, 1, 3),
    ],
)
def test_how_long_an_object_stays(delay, annotations, least, most):
    given = stage(**({"delay": delay} if delay else {}))
    rng = random.Random(drawn().random())
    for _ in range(20):
        assert least <= stays_seconds(given, thing(**annotations), NOW, rng) <= most


@pytest.mark.parametrize(
    ("present", "wanted", "after"),
    [
        ([], Finalizers(add=("a",)), ["a"]),
        (["a"], Finalizers(add=("a",)), None),
        (["a", "b"], Finalizers(remove=("a",)), ["b"]),
        (["a"], Finalizers(remove=("a",)), []),
        (["a"], Finalizers(remove=("x",)), None),
        (["a", "b"], Finalizers(empty=True), []),
        (["a"], Finalizers(add=("b",), empty=True), ["b"]),
        ([], Finalizers(empty=True), None),
    ],
)
def test_finalizers(present, wanted, after):
    operations = finalizer_operations(present, wanted)
    path = {"path": "/metadata/finalizers"}
    if after is None:
        assert operations == []
    elif not after:
        assert operations == [{"op": "remove", **path}]
    else:
        assert operations == [{"op": "add", **path, "value": after}]
