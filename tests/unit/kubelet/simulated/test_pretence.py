"""What the annotations of a simulated node say has gone wrong."""

from sampan.kubelet.simulated.pretence import Troubles, troubles_of
from sampan.kubelet.simulated.script import PREFIX, Script
from sampan.kubelet.simulated.scripted_failures import ScriptedFailures


def test_lists_are_read_with_or_without_spaces():
    notes = {f"{PREFIX}unhealthy-devices": "device-0, device-2,", f"{PREFIX}drivers-away": "d.com"}
    found = Troubles(frozenset({"device-0", "device-2"}), frozenset({"d.com"}))
    assert troubles_of(notes) == found
    assert troubles_of({}) == Troubles()


def test_a_step_fails_as_often_as_is_said_and_for_each_by_itself():
    failures, script = ScriptedFailures(), Script({f"{PREFIX}fail": "one:2:no;two::never"})
    assert [failures.next("one", "a", script) for _ in range(3)] == ["no", "no", None]
    assert failures.next("one", "b", script) == "no"
    assert [failures.next("two", "a", script) for _ in range(3)] == ["never"] * 3
    assert failures.next("three", "a", script) is None
    again = Script({f"{PREFIX}fail": "one:1:no more"})
    assert failures.next("one", "a", again) == "no more", "it was said anew"
