"""What expressions ask an authorizer."""

import pytest

from sampan.api.cel.catalog import KUBERNETES
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CostExceeded, EvaluationError
from sampan.api.cel.libraries.authorizer import (
    AUTHORIZER,
    Answer,
    Authorizer,
    Question,
    Undecided,
    from_answers,
)
from sampan.api.cel.program import compile_expression

ENVIRONMENT = Environment({"authorizer": AUTHORIZER}, KUBERNETES)


def evaluated(text, answers):
    return compile_expression(text, ENVIRONMENT).evaluate(
        {"authorizer": Authorizer(from_answers(answers))}
    )


PODS = "authorizer.group('').resource('pods').namespace('n').name('a').check('get')"
ASKED = Question(verb="get", resource="pods", namespace="n", name="a")


def test_a_question_has_every_part_that_the_expression_gave():
    assert evaluated(f"{PODS}.allowed()", {ASKED: Answer(True)}) is True
    assert evaluated(f"{PODS}.reason()", {ASKED: Answer(False, "no rule")}) == "no rule"
    assert evaluated(f"{PODS}.errored()", {ASKED: Answer(False, "", "gone")}) is True
    assert evaluated(f"{PODS}.error()", {ASKED: Answer(False, "", "gone")}) == "gone"
    path = Question(verb="get", path="/healthz")
    assert evaluated("authorizer.path('/healthz').check('get').allowed()", {path: Answer(True)})


def test_selectors_subresources_and_other_accounts_are_part_of_it():
    asked = Question("list", ("ns", "sa"), "", "apps", "deployments", "scale", "", "", "a=b", "c=d")
    text = (
        "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments')"
        ".subresource('scale').fieldSelector('a=b').labelSelector('c=d').check('list').allowed()"
    )
    assert evaluated(text, {asked: Answer(True)}) is True


def test_a_question_without_an_answer_stops_even_an_or():
    with pytest.raises(Undecided) as found:
        evaluated(f"{PODS}.allowed() || true", {})
    assert found.value.question == ASKED


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("authorizer.path(' ')", "path must not be empty"),
        ("authorizer.group('').resource('')", "resource must not be empty"),
        ("authorizer.serviceAccount('a', 'B')", "Invalid service account name"),
        ("authorizer.serviceAccount('A.', 'b')", "Invalid service account namespace"),
    ],
)
def test_what_cannot_be_asked_is_an_error(text, complaint):
    with pytest.raises(EvaluationError, match=complaint):
        evaluated(text, {})


def test_an_expression_may_ask_twice_but_not_three_times():
    twice = f"{PODS}.allowed() && {PODS}.allowed()"
    assert evaluated(twice, {ASKED: Answer(True)}) is True
    with pytest.raises(CostExceeded):
        evaluated(f"{twice} && {PODS}.allowed()", {ASKED: Answer(True)})
