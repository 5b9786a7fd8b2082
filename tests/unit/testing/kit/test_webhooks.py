"""Functions as webhooks: what they answer becomes a review's response."""

import json
from base64 import b64decode

import pytest

from sampan.testing.kit.spec import CannotStart
from sampan.testing.kit.webhooks import Webhook, _review, webhooks_of

REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
          "request": {"uid": "u", "object": {"a": 1}}}  # fmt: skip


def response(answer):
    return _review(REVIEW, lambda _: answer)["response"]


@pytest.mark.parametrize("answer", [None, True])
def test_nothing_to_say_lets_it_pass(answer):
    assert response(answer) == {"uid": "u", "allowed": True}


def test_a_text_refuses_with_it():
    assert response("not so")["status"] == {"message": "not so"}
    assert response(False)["allowed"] is False


def test_a_dict_is_the_object_from_now_on():
    found = response({"a": 2})
    [change] = json.loads(b64decode(found["patch"]))
    assert change == {"op": "replace", "path": "", "value": {"a": 2}}


def test_an_exception_refuses():
    def broken(request):
        return request["missing"]

    assert _review(REVIEW, broken)["response"]["status"] == {"message": "KeyError: 'missing'"}


def test_what_is_no_choice_of_webhooks_is_refused():
    assert webhooks_of({}) == []
    assert webhooks_of([own := Webhook(print, ("pods",))]) == [own]
    for chosen in (3, "pods", [print], {"pods": 3}):
        with pytest.raises(CannotStart, match="webhooks="):
            webhooks_of(chosen)
