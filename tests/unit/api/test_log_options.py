"""The options of `kubectl logs`."""

from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.log_options import LogOptions, options_from_query, to_query


def test_options_are_read_from_the_query():
    query = {"follow": ["true"], "tailLines": ["5"], "sinceSeconds": ["3"], "previous": ["0"]}
    options, errors = options_from_query(query)
    assert options == LogOptions(follow=True, tail_lines=5, since_seconds=3)
    assert errors == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"sinceTime": "yesterday"},
            'sinceTime: Invalid value: "yesterday": must be an RFC 3339 time',
        ),
        ({"stream": "both"}, 'Unsupported value: "both"'),
        (
            {"sinceSeconds": "1", "sinceTime": "2026-11-15T06:32:22Z"},
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)
def test_options_that_make_no_sense_are_named(query, message):
    _, errors = options_from_query({name: [value] for name, value in query.items()})
    assert message in str(errors[0])


@given(
    st.builds(
        LogOptions,
        follow=st.booleans(),
        previous=st.booleans(),
        timestamps=st.booleans(),
        since_seconds=st.none() | st.integers(1, 10**9),
        tail_lines=st.none() | st.integers(0, 10**9),
        limit_bytes=st.none() | st.integers(1, 10**9),
    )
)
def test_what_is_written_is_read_back(options):
    assert options_from_query(parse_qs(to_query(options))) == (options, [])
