"""What a policy says, without a server."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.cel.policies import compile_validating
from sampan.apiserver.admission.policies.policies import Policy
from sampan.apiserver.admission.policies.validating_verdict import Decision, verdict

GIVEN = {"object": {"metadata": {"name": "a"}}, "oldObject": None, "request": {}, "params": None}


def policy(*validations, **more):
    spec = {"validations": [{"expression": one} for one in validations], **more}
    return Policy({"metadata": {"name": "p"}, "spec": spec}, compile_validating(spec), ())


def test_what_holds_is_not_mentioned_and_what_does_not_is():
    said = verdict(policy("true", "object.metadata.name == 'b'"), GIVEN)
    text = "failed expression: object.metadata.name == 'b'"
    assert said.decisions == ((1, Decision(True, text, "Invalid")),)


@pytest.mark.parametrize(("failure", "denies"), [("Fail", True), ("Ignore", False)])
def test_a_stored_policy_that_does_not_compile_counts_as_failed(failure, denies):
    """One that an older version accepted."""
    said = verdict(policy("nothing", failurePolicy=failure), GIVEN)
    ((index, decision),) = said.decisions
    assert (index, decision.denies, decision.error) == (0, denies, "compile_error")
    assert decision.message.startswith("compilation error: compilation failed: ERROR: <input>:1:1:")


def test_all_expressions_of_a_policy_share_one_budget():
    long = {**GIVEN, "object": {"text": "a" * 5000, "part": "b" * 1000}}
    text = " || ".join(["object.text.contains(object.part)"] * 15) + " || true"
    ((index, decision),) = verdict(policy(*[text] * 20), long).decisions
    assert (index, decision.error) == (0, "out_of_budget")
    assert decision.message.startswith("validation failed due to running out of cost budget")


def test_a_variable_is_evaluated_once_and_its_error_is_everybodys():
    variables = [{"name": "v", "expression": "object.missing"}]
    said = verdict(
        policy("variables.v == 1", "variables.v == 2 || true", variables=variables), GIVEN
    )
    ((index, decision),) = said.decisions
    assert index == 0
    assert decision.message == (
        "expression 'variables.v == 1' resulted in error: composited variable \"v\" fails to "
        "evaluate: no such key: missing"
    )


WORDS = st.sampled_from([
    "object", ".metadata", ".name", "1", "'a'", "==", "+", "&&", "||", "(", ")", "[", "]", "{", "}",
    "all", "x", ",", "?", ":", "has(object.a)", "params", "null", "-", "!", "request.operation",
])  # fmt: skip


@settings(max_examples=60)
@given(st.lists(WORDS, max_size=12).map(" ".join))
def test_no_policy_breaks_the_server(text):
    for _, decision in verdict(policy(text), GIVEN).decisions:
        assert decision.denies
