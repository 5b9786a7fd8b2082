"""Which devices a container gets, and what is hinted of them."""

import pytest

from sampan.kubelet.device_manager.device_rules import (
    NotEnough,
    PluginDevice,
    Wanted,
    chosen,
    completed,
    device_hints,
)
from sampan.kubelet.resource_managers.numa import Hint, NumaNodes

GPU = "example.com/gpu"
TWO = NumaNodes((0, 1))


def devices(*specs):
    """a, b0 (on NUMA node 0), c!1 (sick, on 1)"""
    made = {}
    for spec in specs:
        numa = 1 << int(spec[-1]) if spec[-1].isdigit() else 0
        made[spec[0]] = PluginDevice(spec[0], "!" not in spec, numa)
    return made


def taken(wanted, found, preferred=()):
    return completed(chosen(wanted, found), preferred, wanted)


def test_free_healthy_devices_are_taken_once():
    found = devices("a", "b", "c!", "d")
    assert taken(Wanted(GPU, 2, in_use=frozenset("a")), found) == ("b", "d")
    with pytest.raises(NotEnough) as refused:
        taken(Wanted(GPU, 3, in_use=frozenset("a")), found)
    assert str(refused.value) == (
        "requested number of devices unavailable for example.com/gpu. Requested: 3, Available: 2"
    )


@pytest.mark.parametrize(
    ("wanted", "found", "why"),
    [
        (Wanted(GPU, 1), None, "cannot allocate unregistered device example.com/gpu"),
        (Wanted(GPU, 1), devices("a!"),
         "no healthy devices present; cannot allocate unhealthy devices example.com/gpu"),
        (Wanted(GPU, 1, held=frozenset("a")), devices("a!", "b"),
         "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
         "example.com/gpu"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_said_as_upstream_says_it(wanted, found, why):
    with pytest.raises(NotEnough) as refused:
        chosen(wanted, found)
    assert str(refused.value) == why


def test_what_a_container_holds_it_keeps():
    choice = chosen(Wanted(GPU, 1, held=frozenset("a"), in_use=frozenset("a")), devices("a", "b"))
    assert (choice.taken, choice.missing) == ((), 0)


def test_what_an_init_container_had_comes_first():
    wanted = Wanted(GPU, 2, reusable=frozenset("c"), in_use=frozenset("bc"))
    assert taken(wanted, devices("a", "b", "c")) == ("c", "a")


def test_aligned_devices_before_others_and_the_plugin_chooses_among_them():
    found = devices("a0", "b1", "c1", "d1", "e")
    wanted = Wanted(GPU, 2, affinity=0b10)
    assert taken(wanted, found) == ("b", "c")
    choice = chosen(wanted, found)
    assert choice.askable == ("b", "c", "d")
    assert completed(choice, ["d", "a", "c"], wanted) == ("d", "c")  # a is not aligned
    four = Wanted(GPU, 4, affinity=0b10)
    choice = chosen(four, found)
    assert (choice.taken, choice.missing) == (("b", "c", "d"), 1)
    assert completed(choice, ["e"], four) == ("b", "c", "d", "e")
    assert completed(choice, (), four) == ("b", "c", "d", "a")  # elsewhere before nowhere


def test_hints_prefer_as_few_nodes_as_would_do_were_all_free():
    found = devices("a0", "b0", "c1")
    assert device_hints(Wanted(GPU, 1), found, TWO) == [
        Hint(0b01, True), Hint(0b10, True), Hint(0b11, False),
    ]  # fmt: skip
    assert device_hints(Wanted(GPU, 2), found, TWO) == [Hint(0b01, True), Hint(0b11, False)]
    used = Wanted(GPU, 2, in_use=frozenset("a"))
    assert device_hints(used, found, TWO) == [Hint(0b11, False)]
    assert device_hints(Wanted(GPU, 3), found, TWO) == [Hint(0b11, True)]


def test_devices_without_a_place_do_not_mind_and_too_few_cannot():
    assert device_hints(Wanted(GPU, 1), devices("a", "b"), TWO) is None
    assert device_hints(Wanted(GPU, 4), devices("a0", "b1"), TWO) == []


def test_hints_of_what_is_held_and_of_what_can_be_used_again():
    found = devices("a0", "b0", "c1")
    held = Wanted(GPU, 1, held=frozenset("c"), in_use=frozenset("c"))
    assert device_hints(held, found, TWO) == [Hint(0b10, True), Hint(0b11, False)]
    assert device_hints(Wanted(GPU, 2, held=frozenset("c")), found, TWO) == []
    again = Wanted(GPU, 2, reusable=frozenset("c"), in_use=frozenset("c"))
    assert device_hints(again, found, TWO) == [Hint(0b11, False)]
