import pytest

from sampan.core.http.query import first_value, query_values


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {}),
        ("a=1&a=2&b", {"a": ["1", "2"], "b": [""]}),
        ("a=&=x", {"a": [""], "": ["x"]}),
        ("a=1;b=2&c=3", {"c": ["3"]}),
        ("a=%zz&b=%4", {}),
        ("a=%41+b%3Dc", {"a": ["A b=c"]}),
        ("&&a=b&", {"a": ["b"]}),
        ("a=b=c", {"a": ["b=c"]}),
    ],
)
def test_a_query_is_read_as_go_reads_it(query, found):
    assert query_values(query) == found


def test_the_first_of_several_values_counts():
    assert first_value("a=1&a=2", "a") == "1"
    assert first_value("ab=1", "a") == ""
