"""What printers share."""

from sampan.apiserver.printers.layout import bool_text, labels_text, list_text, selector_text, since


def test_lists_show_three_and_count_the_rest():
    assert list_text(["a", "b", "c"]) == "a,b,c"
    assert list_text(["a", "b", "c", "d", "e"]) == "a,b,c + 2 more..."
    assert list_text([]) == ""


def test_labels_and_selectors():
    assert labels_text({"b": "1", "a": "2"}) == "a=2,b=1"
    assert labels_text(None) == "<none>"
    assert selector_text({"matchLabels": {"a": "b"}}) == "a=b"
    assert selector_text({}) == "<none>"
    assert selector_text(None) == "<none>"
    assert selector_text({"matchExpressions": [{"key": "a", "operator": "?"}]}) == "<error>"


def test_times_and_truths():
    assert since(None, 0.0) == "<unknown>"
    assert since("1970-01-01T00:00:00Z", 5.0) == "5s"
    assert [bool_text(one) for one in (None, True, False)] == ["<unset>", "True", "False"]
