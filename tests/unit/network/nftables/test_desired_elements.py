from hypothesis import given
from hypothesis import strategies as st

from sampan.network.nftables.desired_elements import DesiredElements

KEYS = [("service-ips", (address, "TCP", 80)) for address in ("a", "b", "c")]
ELEMENTS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([("x", 1), ("y", 2), None]))
STEPS = st.lists(st.tuples(st.sampled_from(["d/s1", "d/s2", "d/s3"]), ELEMENTS), max_size=12)


def followed(kernel, changes):
    for key, value, gone in changes:
        if gone:
            del kernel[key]
        else:
            assert key not in kernel, "the kernel refuses to overwrite"
            kernel[key] = value


@given(ELEMENTS, STEPS)
def test_the_kernel_holds_what_is_asked_for_whatever_came_before(present, steps):
    desired, kernel = DesiredElements(present), dict(present)
    asked = {}
    for service, elements in steps:
        followed(kernel, desired.put(service, elements))
        asked[service] = elements
    followed(kernel, desired.adopted())
    assert set(kernel) == {key for elements in asked.values() for key in elements}
    for key, value in kernel.items():
        assert value in [elements[key] for elements in asked.values() if key in elements]


@given(STEPS)
def test_asking_again_for_the_same_changes_nothing(steps):
    desired = DesiredElements()
    for service, elements in steps:
        desired.put(service, elements)
        assert desired.put(service, elements) == []


def test_the_first_who_asked_has_it_and_the_next_inherits():
    desired = DesiredElements()
    [key, *_] = KEYS
    assert desired.put("d/s1", {key: ("x", 1)}) == [(key, ("x", 1), False)]
    assert desired.put("d/s2", {key: ("y", 2)}) == []
    assert desired.put("d/s1", {}) == [(key, None, True), (key, ("y", 2), False)]
    assert desired.put("d/s2", {}) == [(key, None, True)]
    assert len(desired) == 0


def test_what_an_earlier_proxy_left_and_is_still_right_is_not_touched():
    [first, second, _] = KEYS
    desired = DesiredElements({first: ("x", 1), second: ("y", 2)})
    assert desired.put("d/s1", {first: ("x", 1)}) == []
    assert desired.adopted() == [(second, None, True)]


FRONT = ("10.1.2.3", "TCP", 80)
PARTS = [(name, FRONT) for name in ("verdicts", "slot-0", "slot-1", "empty")]
GROUPED = st.dictionaries(
    st.sampled_from([*PARTS, *KEYS]), st.sampled_from([("x", 1), ("y", 2), None])
)
GROUPED_STEPS = st.lists(st.tuples(st.sampled_from(["d/s1", "d/s2", "d/s3"]), GROUPED), max_size=12)


@given(GROUPED, GROUPED_STEPS)
def test_what_belongs_together_is_all_of_one_object_that_asks_for_it(present, steps):
    desired, kernel = DesiredElements(present, lambda key: key[1]), dict(present)
    asked = {}
    for service, elements in steps:
        followed(kernel, desired.put(service, elements))
        asked[service] = elements
    followed(kernel, desired.adopted())
    for front in {key[1] for key in [*PARTS, *KEYS]}:
        there = {key: value for key, value in kernel.items() if key[1] == front}
        wanted = [
            {key: value for key, value in elements.items() if key[1] == front}
            for elements in asked.values()
        ]
        assert there in [each for each in wanted if each] or (not there and not any(wanted))


def test_who_changes_every_element_of_a_group_keeps_the_group():
    desired = DesiredElements(group_of=lambda key: key[1])
    verdicts, slot, other_slot, empty = PARTS
    desired.put("d/s1", {verdicts: ("x", 1), slot: ("x", 1)})
    assert desired.put("d/s2", {verdicts: ("y", 2), slot: ("y", 2), other_slot: ("y", 3)}) == []
    assert desired.elements_of("d/s2") == {}
    kernel = {verdicts: ("x", 1), slot: ("x", 1)}
    followed(kernel, desired.put("d/s1", {empty: None}))
    assert kernel == {empty: None}
    followed(kernel, desired.put("d/s1", {}))
    assert kernel == {verdicts: ("y", 2), slot: ("y", 2), other_slot: ("y", 3)}
