"""api/errors.py: one class per reason, and the same words as the original."""

import pytest

from sampan.api import errors


def test_not_found_is_worded_as_the_original_words_it():
    error = errors.not_found("deployments", "apps", "web")
    assert error.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "web" not found',
        "reason": "NotFound",
        "details": {"name": "web", "group": "apps", "kind": "deployments"},
        "code": 404,
    }


def test_invalid_lists_every_cause():
    causes = [
        errors.required_value("spec.containers[0].image"),
        errors.not_supported("spec.restartPolicy", "Sometimes", ["Always", "Never"]),
    ]
    error = errors.invalid("Pod", "", "web", causes)
    assert error.message == (
        'Pod "web" is invalid: [spec.containers[0].image: Required value, '
        'spec.restartPolicy: Unsupported value: "Sometimes": '
        'supported values: "Always", "Never"]'
    )
    assert [cause["reason"] for cause in error.status()["details"]["causes"]] == [
        "FieldValueRequired",
        "FieldValueNotSupported",
    ]


@pytest.mark.parametrize("kind", sorted(errors._BY_REASON.values(), key=lambda k: k.__name__))
def test_a_status_comes_back_as_the_same_error(kind):
    error = kind("why", details={"name": "x"}, retry_after_seconds=3)
    again = errors.from_status(error.status())
    assert (type(again), again.message, again.details) == (kind, "why", {"name": "x"})
    assert again.retry_after_seconds == 3


def test_an_unknown_reason_falls_back_to_the_code():
    assert isinstance(errors.from_status({"reason": "Odd", "code": 404}), errors.NotFound)
    assert isinstance(errors.from_status({}, 599), errors.InternalError)
