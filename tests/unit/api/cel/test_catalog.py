"""Every function of every library, with whatever values."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sampan.api.cel.catalog import BINDINGS, ENCODERS, KUBERNETES_PATCHES, MATH
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CostExceeded, EvaluationError
from sampan.api.cel.libraries.authorizer import AUTHORIZER, Answer, Authorizer
from sampan.api.cel.program import compile_expression

ENVIRONMENT = Environment(
    {"authorizer": AUTHORIZER}, (*KUBERNETES_PATCHES, MATH, ENCODERS, BINDINGS)
)
GIVEN = {"authorizer": Authorizer(lambda _question: Answer(True))}
VALUES = [
    "1", "-1", "9223372036854775807", "-9223372036854775808", "2u", "18446744073709551615u", "1.5",
    "-0.0", "1e308", "0.0 / 0.0", "1.0 / 0.0", "''", "'abc def'", "'é\\u0000x'", "'1Gi'",
    "'10.0.0.0/8'", "'1.2.3.4'", "'::ffff:1.2.3.4'", "'fe80::1%eth0'", "'https://a.b:99999/x'",
    "'https://[::1'", "'1.2.3-rc.1'", "'2020-01-01T00:00:00Z'", "'99999h'", "'%d %s %f %'", "'(a+'",
    "'America/Los_Angeles'", "'+25:00'", "b''", "b'\\xff'", "true", "null", "[]", "[1, 2]",
    "['a', 'b']", "[null]", "[[1]]", "{}", "{'a': 1}", "{true: 1}", "duration('1s')",
    "duration('-9223372036s')", "timestamp(0)", "timestamp('9999-12-31T23:59:59Z')",
    "timestamp('0001-01-01T00:00:00Z')", "optional.none()", "optional.of(1)", "int",
    "quantity('1')", "quantity('1e400')", "ip('1.2.3.4')", "cidr('10.0.0.0/8')", "cidr('::/0')",
    "url('https://x/')", "semver('1.0.0')", "format.uuid()", "authorizer", "authorizer.group('')",
    "authorizer.group('').resource('x')", "authorizer.path('/')",
    "authorizer.path('/x').check('get')",
]  # fmt: skip
BY_TYPE = {}
for _text in VALUES:
    BY_TYPE.setdefault(compile_expression(_text, ENVIRONMENT).result_type.name, []).append(_text)
CALLS = sorted(
    (
        one
        for overloads in ENVIRONMENT.functions.values()
        for one in overloads
        if one.function[0] not in "_@!-"
    ),
    key=lambda one: (one.function, str(one.arguments)),
)


@st.composite
def calls(draw):
    """Mostly with values of the types that the function declares."""
    overload = draw(st.sampled_from(CALLS))
    given_values = []
    for one in overload.arguments:
        fitting = BY_TYPE.get(one.name, VALUES)
        chosen = draw(st.sampled_from([fitting, fitting, VALUES]))
        given_values.append(f"dyn({draw(st.sampled_from(chosen))})")
    if overload.member:
        return f"{given_values[0]}.{overload.function}({', '.join(given_values[1:])})"
    return f"{overload.function}({', '.join(given_values)})"


@pytest.mark.slow
@settings(max_examples=200)
@example(f"math.greatest({', '.join(3 * [f'dyn({VALUES[-1]})'])})")
@given(calls())
def test_a_function_gives_a_value_or_says_what_is_wrong(text):
    program = compile_expression(text, ENVIRONMENT)
    try:
        program.evaluate(GIVEN)
    except (EvaluationError, CostExceeded) as error:  # three questions of rights are too many
        assert str(error)  # noqa: PT017  (a value is as good)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quantity('1e400').asApproximateFloat() > 1e308", True),
        ("quantity('-1e400').asApproximateFloat() < -1e308", True),
    ],
)
def test_numbers_beyond_the_largest_are_infinite(text, expected):
    assert compile_expression(text, ENVIRONMENT).evaluate(GIVEN) is expected


def test_a_time_zone_is_within_a_day():
    program = compile_expression("timestamp(0).getHours('+25:00')", ENVIRONMENT)
    with pytest.raises(EvaluationError, match="unknown time zone"):
        program.evaluate({})
