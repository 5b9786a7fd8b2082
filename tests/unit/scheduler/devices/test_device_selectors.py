import pytest

from sampan.api.cel.language.cost import Budget
from sampan.scheduler.devices.device_selectors import BadSelector, Selectors, TakesLong
from sampan.scheduler.devices.devices import slice_of
from tests.support.generators.device_objects import DRIVER, device, resource_slice


def made():
    written = device("d0", model="a", cores=3, shared=True)
    written["attributes"]["version"] = {"version": "1.2.3"}
    written["attributes"]["other.example.com/model"] = {"string": "z"}
    written["capacity"] = {"memory": {"value": "4Gi"}}
    return slice_of(resource_slice("s", [written], nodeName="n")).devices[0]


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (f'device.driver == "{DRIVER}"', True),
        (f'device.attributes["{DRIVER}"].model == "a"', True),
        (f'device.attributes["{DRIVER}"].cores > 3', False),
        (f'device.attributes["{DRIVER}"].shared', True),
        ('device.attributes["other.example.com"].model == "z"', True),
        (f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("1.0.0"))', True),
        (f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("2Gi"))', True),
        ('"model" in device.attributes["nobody.example.com"]', False),
        ('"nobody.example.com" in device.attributes', False),
        (f'cel.bind(mine, device.attributes["{DRIVER}"], mine.cores == 3)', True),
    ],
)
def test_a_selector_is_asked_about_what_a_device_says(expression, answer):
    assert Selectors().match(made(), expression) is answer


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("device.", "CEL compile error: "),
        ("1 + 1", "CEL runtime error: "),
        (f'device.attributes["{DRIVER}"].nothing == 1', "CEL runtime error: no such key: nothing"),
    ],
)
def test_one_that_has_no_answer_says_why(expression, what):
    with pytest.raises(BadSelector, match=what):
        Selectors().match(made(), expression)


def test_a_device_is_asked_once():
    selectors, one = Selectors(), made()
    assert selectors.match(one, "true")
    selectors._programs.clear()
    assert selectors.match(one, "true")
    assert not selectors._programs


MANY = str(list(range(50)))
LONG = f"{MANY}.all(a, {MANY}.all(b, {MANY}.all(c, a + b + c >= 0)))"


def test_who_is_in_a_hurry_is_told_that_it_takes_long_and_finds_the_answer_later():
    selectors, one = Selectors(), made()
    with pytest.raises(TakesLong):
        selectors.match(one, LONG, Budget(50_000))
    assert selectors.match(one, LONG)
    assert selectors.match(one, LONG, Budget(50_000))


def test_what_has_no_answer_is_found_out_once():
    selectors, one = Selectors(), made()
    for _ in range(2):
        with pytest.raises(BadSelector, match="no such key: nothing"):
            selectors.match(one, f'device.attributes["{DRIVER}"].nothing == 1')
        selectors._programs.clear()
    assert not selectors._programs
