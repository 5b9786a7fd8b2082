"""What a query of the machine's logs asks for."""

import pytest

from sampan.kubelet.server.node_log_query import BadQuery, journal_arguments, read, validate


def test_a_name_with_a_slash_is_a_file_and_others_are_services():
    found = read({"query": ["kubelet", "foo/bar.log", " "]})
    assert found is not None
    assert (found.services, found.files) == (("kubelet",), ("foo/bar.log",))


def test_who_asks_for_nothing_gets_files():
    assert read({}) is None
    assert read({"other": ["1"]}) is None


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"query": ["  "]}, 'query: Invalid value: ["  "]: may not be empty'),
        ({"sinceTime": ["now"]}, 'sinceTime: Invalid value: "now": invalid time format'),
        (
            {"boot": ["x"], "tailLines": ["1.5"]},
            '[boot: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax, '
            'tailLines: Invalid value: "1.5": strconv.Atoi: parsing "1.5": invalid syntax]',
        ),
    ],
)
def test_what_cannot_be_read_is_told(query, why):
    with pytest.raises(BadQuery) as found:
        read(query)
    assert (found.value.status, str(found.value)) == (400, why)


EARLY, LATE = "2026-03-04T05:06:07Z", "2026-03-05T00:00:00Z"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"boot": ["0"]}, "query: Required value: cannot be empty with options"),
        ({"query": ["a b"]}, 'query: Invalid value: "a b": input contains unsupported characters'),
        (
            {"query": ["x" * 257]},
            f'query: Invalid value: "{"x" * 257}": length must be less than 256',
        ),
        ({"query": list("abcde")}, "query: Too many: 5: must have at most 4 items"),
        (
            {"query": ["a", "b/c"]},
            'query: Invalid value: "[b/c], [a]": cannot specify a file and service',
        ),
        (
            {"query": ["a/b", "c/d"]},
            'query: Invalid value: ["a/b","c/d"]: cannot specify more than one file',
        ),
        (
            {"query": ["a/b"], "boot": ["0"]},
            'query: Invalid value: ["a/b"]: cannot specify file with options',
        ),
        ({"query": ["a/b"]}, 'query: Invalid value: ["a/b"]: gone'),
        (
            {"query": ["a"], "sinceTime": [LATE], "untilTime": [EARLY]},
            f'untilTime: Invalid value: "{EARLY}": must be after `sinceTime`',
        ),
        ({"query": ["a"], "boot": ["1"]}, "boot: Invalid value: 1: must be less than 1"),
        (
            {"query": ["a"], "tailLines": ["100001"]},
            "tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive",
        ),
        (
            {"query": ["a"], "pattern": ["(a"]},
            'pattern: Invalid value: "(a": error parsing regexp: missing closing ): `(a`',
        ),
    ],
)
def test_what_is_not_to_be_had_is_told(query, why):
    asked = read(query)
    assert asked is not None
    with pytest.raises(BadQuery) as found:
        validate(asked, "gone")
    assert (found.value.status, str(found.value)) == (406, why)


def test_the_journal_is_asked_with_every_option():
    asked = read({
        "query": ["kubelet", "containerd"], "sinceTime": [EARLY], "untilTime": [LATE],
        "tailLines": ["20"], "pattern": ["a.*b"], "boot": ["-1"],
    })  # fmt: skip
    assert asked is not None
    validate(asked, "")
    assert journal_arguments(asked, asked.services) == [
        "--utc", "--no-pager", "--output=short-precise",
        "--since=2026-3-4 05:6:7", "--until=2026-3-5 00:0:0",
        "--pager-end", "--lines=20", "--unit=kubelet", "--unit=containerd",
        "--grep=a.*b", "--boot", "-1",
    ]  # fmt: skip
