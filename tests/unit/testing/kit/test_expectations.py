import pytest

from sampan.testing.kit.expectations import READY, expectation_of, shown

READY_POD = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize(
    ("condition", "obj", "holds"),
    [
        ("Ready", READY_POD, True),
        ("ready", READY_POD, True),
        ("Ready=False", READY_POD, False),
        ("Available", READY_POD, False),
        ("phase=Running", READY_POD, True),
        ("phase=Failed", READY_POD, False),
        ("exists", {}, True),
        ("exists", None, False),
        ("deleted", None, True),
        ("deleted", READY_POD, False),
        ("Ready", None, False),
        (lambda obj: obj["status"]["phase"] == "Running", READY_POD, True),
        (lambda obj: obj["status"]["phase"] == "Running", None, False),
    ],
)
def test_a_condition_is_a_question_about_an_object(condition, obj, holds):
    assert expectation_of(condition).holds(obj) is holds


def test_what_is_shown_names_reasons():
    condition = {"type": "Ready", "status": "False", "reason": "NotYet", "message": "soon"}
    text = shown({"status": {"phase": "Pending", "conditions": [condition]}})
    assert "phase: Pending" in text
    assert "Ready: False (NotYet: soon)" in text
    assert "does not exist" in shown(None)


@pytest.mark.parametrize(
    ("ready", "generation", "holds"), [(2, 1, True), (1, 1, False), (2, 2, False)]
)
def test_a_set_is_ready_with_all_replicas_of_its_newest_generation(ready, generation, holds):
    obj = {
        "metadata": {"generation": generation},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 1, "readyReplicas": ready},
    }
    assert expectation_of(READY["StatefulSet"]).holds(obj) is holds
