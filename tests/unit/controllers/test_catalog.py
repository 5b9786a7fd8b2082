from pathlib import Path

import pytest

from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import (
    NEED_A_KEY,
    ControllerSettings,
    all_controllers,
    chosen_controllers,
)
from sampan.controllers.controller import UnknownController
from sampan.controllers.identities import user_name

EVERYTHING = ControllerSettings("", Ca(b"", b""), lambda *_: "")


def test_no_two_controllers_share_a_name():
    names = [n for one in all_controllers(EVERYTHING) for n in (one.name, *one.aliases)]
    assert len(names) == len(set(names))


def test_those_that_need_a_key_are_known_where_there_is_none():
    with_key = {one.name for one in all_controllers(EVERYTHING)}
    without = {one.name for one in all_controllers(ControllerSettings(""))}
    assert with_key - without <= set(NEED_A_KEY)
    chosen = chosen_controllers(ControllerSettings(""), ["*", "-csrsigning", "-job"])
    assert {one.name for one in chosen} == without - {"job-controller"}
    with pytest.raises(UnknownController):
        chosen_controllers(ControllerSettings(""), ["-nobody"])


def test_each_acts_as_an_account_of_its_own():
    for one in all_controllers(EVERYTHING):
        assert user_name(one.name).startswith("system:")


def test_each_has_a_line_in_the_documentation():
    document = (Path(__file__).parents[3] / "docs" / "controllers.md").read_text()
    for one in all_controllers(EVERYTHING):
        short = " | ".join([one.name, *one.aliases])
        assert f"| {short} |" in document, short
