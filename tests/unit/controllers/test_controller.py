import pytest

from sampan.controllers.catalog import ControllerSettings, all_controllers
from sampan.controllers.controller import UnknownController, selected_controllers

ALL = all_controllers(ControllerSettings(root_ca="PEM"))


def names(wanted):
    return {one.name for one in selected_controllers(ALL, wanted)}


def test_a_star_is_all_of_them():
    assert names(["*"]) == {one.name for one in ALL if not one.is_named_only}


def test_one_can_be_left_out_by_name_or_alias():
    assert names(["*", "-garbagecollector"]) == names(["*"]) - {"garbage-collector-controller"}
    assert names(["-namespace-controller", "*"]) == names(["*"]) - {"namespace-controller"}


def test_one_can_be_asked_for_alone():
    assert names(["namespace"]) == {"namespace-controller"}


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(UnknownController, match="-jobb"):
        names(["*", "-jobb"])


def test_all_can_be_left_out():
    """Somebody else's take their place."""
    assert names(["-*"]) == set()
    assert names(["-*", "job"]) == {"job-controller"}
    assert names(["*", "-*"]) == set()
