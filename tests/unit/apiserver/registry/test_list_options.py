import pytest

from sampan.api.calls import Options
from sampan.api.errors import Failure, Invalid
from sampan.apiserver.registry.list_options import check_list_options, revision_number


@pytest.mark.parametrize(
    ("options", "watch"),
    [
        (Options(resource_version_match="Exact"), False),
        (Options(resource_version_match="Exact", resource_version="0"), False),
        (Options(resource_version_match="Other", resource_version="5"), False),
        (
            Options(resource_version_match="Exact", resource_version="5", continue_token="x"),
            False,
        ),
        (Options(send_initial_events=True, resource_version_match="NotOlderThan"), False),
        (Options(send_initial_events=True), True),
        (Options(resource_version_match="NotOlderThan"), True),
        (Options(send_initial_events=False), True),
        (Options(send_initial_events=False), False),
        (Options(send_initial_events=True, resource_version_match="Exact"), True),
    ],
)
def test_impossible_lists_are_invalid(options, watch):
    with pytest.raises(Invalid, match=r"ListOptions\.meta\.k8s\.io"):
        check_list_options(options, watch)


@pytest.mark.parametrize("initial", [True, False])
def test_a_watch_may_say_whether_it_begins_with_what_is_there(initial):
    options = Options(send_initial_events=initial, resource_version_match="NotOlderThan")
    check_list_options(options, watch=True)


def test_a_resource_version_is_a_number():
    assert revision_number("12") == 12
    with pytest.raises(Failure, match="invalid syntax"):
        revision_number("12a")


def test_a_revision_has_64_bits():
    assert revision_number(str(2**64 - 1)) == 2**64 - 1
    with pytest.raises(Failure, match="value out of range"):
        revision_number(str(2**64))
