"""cmd/cluster/cluster_names.py: which directory a cluster's data is in."""

import pytest

from sampan.cmd.cluster.cluster_names import data_path, known_clusters, state_directory
from sampan.cmd.errors import CannotStart


@pytest.fixture
def here(tmp_path):
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def environment(tmp_path):
    return {"HOME": str(tmp_path / "home")}


def test_nothing_given_is_the_state_directory(here, environment, tmp_path):
    wanted = tmp_path / "home" / ".local" / "state" / "sampan" / "default"
    assert data_path("", "", environment, here) == wanted


def test_a_directory_that_exists_here_is_still_the_one(here, environment):
    (here / "sampan-data").mkdir()
    assert data_path("", "", environment, here) == here / "sampan-data"


def test_a_name_and_a_directory_lead_where_they_say(here, environment):
    (here / "sampan-data").mkdir()
    named = data_path("", "dev", environment, here)
    assert named == state_directory(environment) / "dev"
    assert data_path("x/y", "", environment, here) == here / "x" / "y"
    with pytest.raises(CannotStart, match="give one"):
        data_path("x", "dev", environment, here)


def test_the_state_directory_may_be_elsewhere():
    assert str(state_directory({"XDG_STATE_HOME": "/s", "HOME": "/h"})) == "/s/sampan"
    # A relative one is to be ignored.
    assert str(state_directory({"XDG_STATE_HOME": "s", "HOME": "/h"})) == "/h/.local/state/sampan"


@pytest.mark.parametrize("name", ["../etc", "a/b", "Dev", "-a", ".", "x" * 41, "ä"])
def test_a_name_that_is_none_is_refused(name, here, environment):
    with pytest.raises(CannotStart, match="--name"):
        data_path("", name, environment, here)


def test_clusters_are_found_by_what_marks_them(here, environment):
    assert known_clusters(environment, here) == []
    root = state_directory(environment)
    for folder in (root / "dev", root / "default", here / "sampan-data"):
        folder.mkdir(parents=True)
        (folder / "format").write_text("1\n")
    (root / "something-else").mkdir()
    assert known_clusters(environment, here) == [
        ("", here / "sampan-data"),
        ("default", root / "default"),
        ("dev", root / "dev"),
    ]
