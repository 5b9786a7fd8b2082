"""The small form of `make campaign-nodes`: processes and nodes gone while pods are on their way."""

import pytest

from tests.robustness.campaign import SMALL, PodBook, campaign

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def test_nothing_is_lost_and_nothing_is_there_twice(tmp_path):
    done = campaign(tmp_path, SMALL)
    assert len(done.book.bound) >= SMALL.pods
    assert {"apiserver", "controllers", "nodes", "scheduler"} == {part for part, _ in SMALL.kills}


def pod(name, uid, node="", phase="Pending"):
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"name": name, "uid": uid}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("story", "faulty"),
    [
        ([("ADDED", pod("a", "1")), ("MODIFIED", pod("a", "1", "n"))], False),
        ([("ADDED", pod("a", "1", "n")), ("MODIFIED", pod("a", "1", "m"))], True),
        ([("ADDED", pod("a", "1", "n")), ("MODIFIED", pod("a", "1"))], True),
        ([("ADDED", pod("a", "1")), ("ADDED", pod("a", "2"))], True),
        ([("ADDED", pod("a", "1")), ("DELETED", pod("a", "1")), ("ADDED", pod("a", "2"))], False),
        ([("ADDED", pod("a", "1", "n")), ("ADDED", pod("b", "1", "n"))], True),
    ],
)
def test_the_judge_of_the_campaign_judged(story, faulty):
    book = PodBook()
    for kind, seen in story:
        book.seen(kind, seen)
    assert bool(book.faults) is faulty


def test_a_list_with_a_name_twice_is_a_fault_and_a_new_list_forgets_who_has_gone():
    book = PodBook()
    book.listed([pod("a", "1"), pod("a", "2")])
    assert book.faults
    book = PodBook()
    book.listed([pod("a", "1", "n")])
    book.listed([pod("a", "2", "m")])
    assert not book.faults
    assert book.living == {"a": "2"}
    book.listed([pod("a", "1", "m")])
    assert book.faults, "what was seen of it before counts"
