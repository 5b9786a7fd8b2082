"""Our dataclasses beside the standard library's: the same behaviour for whoever uses them."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field, replace

import pytest

from sampan.api.resources import PODS
from sampan.core import fast_dataclass


def classes(dataclass):
    """The same four classes, made by one decorator or the other."""

    @dataclass(frozen=True, slots=True)
    class Place:
        node: str
        zone: str = "a"
        labels: dict[str, str] = field(default_factory=dict, compare=False)
        secret: str = field(default="", repr=False)

        def moved(self, zone):
            return replace(self, zone=zone)

    @dataclass(frozen=True, slots=True)
    class Nowhere(Place):
        why: str = "lost"
        length: int = field(init=False, repr=False, compare=False)

        def __post_init__(self):
            object.__setattr__(self, "length", len(self.why))

    @dataclass(slots=True)
    class Count:
        value: int = 0

    @dataclass(frozen=True, slots=True, eq=False)
    class Itself:
        pass

    return Place, Nowhere, Count, Itself


def used(made):
    """Classes of which there have been so many instances that their `__init__` is compiled."""
    place, nowhere, count, itself = made
    for _ in range(20):
        place("n"), nowhere("n"), count(), itself()
    assert "__init__" in str(place.__init__)
    return made


OURS, THEIRS = classes(fast_dataclass.dataclass), classes(dataclasses.dataclass)
WAYS = [
    lambda place, *_: place("n1"),
    lambda place, *_: place("n1", "b", {"x": "y"}, "s3cret"),
    lambda place, *_: place("n1") == place(node="n1", labels={"x": "y"}),
    lambda place, *_: place("n1") == place("n2"),
    lambda place, *_: len({place("n1"), place("n1"), place("n2")}),
    lambda place, *_: place("n1").moved("c"),
    lambda place, *_: dataclasses.asdict(place("n1", "b")),
    lambda place, *_: [one.name for one in dataclasses.fields(place)],
    lambda place, *_: (place.__match_args__, place.__slots__, place.__name__),
    lambda place, *_: place("n1").labels is place("n1").labels,
    lambda place, *_: copy.deepcopy(place("n1", labels={"x": "y"})),
    lambda place, nowhere, *_: nowhere("n1", why="gone").length,
    lambda place, nowhere, *_: nowhere("n1") == place("n1"),
    lambda place, nowhere, *_: (nowhere.__slots__, nowhere("n1")),
    lambda place, nowhere, *_: replace(nowhere("n1"), why="no").length,
    lambda place, nowhere, count, *_: (count(), count(3) == count(3), count.__hash__),
    lambda *all_four: all_four[3]() == all_four[3](),
]


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_a_record_behaves_as_a_dataclass(way):
    expected = repr(WAYS[way](*THEIRS))
    assert repr(WAYS[way](*OURS)) == expected
    assert repr(WAYS[way](*classes(fast_dataclass.dataclass))) == expected
    assert repr(WAYS[way](*used(classes(fast_dataclass.dataclass)))) == expected


WRONG = [
    lambda place, *_: place(),
    lambda place, *_: place("n1", zon="b"),
    lambda place, *_: place("n1", "a", {}, "", "five"),
    lambda place, *_: place("n1", node="n2"),
    lambda place, *_: setattr(place("n1"), "zone", "b"),
    lambda place, *_: delattr(place("n1"), "zone"),
    lambda place, nowhere, *_: nowhere("n1", length=3),
    lambda place, nowhere, count, *_: setattr(count(), "valeu", 1),
    lambda place, nowhere, count, *_: hash(count()),
]


@pytest.mark.parametrize("way", range(len(WRONG)))
def test_a_mistake_is_refused_as_by_a_dataclass(way):
    with pytest.raises((TypeError, AttributeError)) as theirs:
        WRONG[way](*THEIRS)
    for ours in (OURS, classes(fast_dataclass.dataclass), used(classes(fast_dataclass.dataclass))):
        with pytest.raises(theirs.type):
            WRONG[way](*ours)


@fast_dataclass.dataclass(frozen=True, slots=True)
class Sent:
    name: str
    parts: tuple[int, ...] = ()


def test_a_frozen_record_survives_pickling_and_stays_frozen():
    sent = Sent("a", (1, 2))
    received = pickle.loads(pickle.dumps(sent))
    assert received == sent
    with pytest.raises(FrozenInstanceError):
        received.name = "b"
    match received:
        case Sent(name, parts):
            assert (name, parts) == ("a", (1, 2))


def test_our_replace_is_the_library_s():
    sent = Sent("a", (1, 2))
    assert fast_dataclass.replace(sent, name="b") == replace(sent, name="b") == Sent("b", (1, 2))
    assert fast_dataclass.replace(sent) is not sent
    assert sent == Sent("a", (1, 2))
    with pytest.raises(FrozenInstanceError):
        fast_dataclass.replace(sent).name = "b"
    with pytest.raises(AttributeError):
        fast_dataclass.replace(sent, nosuch=1)


def test_every_frozen_class_of_the_package_refuses_changes_in_tests():
    """tests/conftest.py asked for it before any of them was defined."""
    with pytest.raises(FrozenInstanceError):
        PODS.plural = "pods"
