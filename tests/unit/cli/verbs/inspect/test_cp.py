"""What a container says its files are called: they stay below where the user wants them."""

import pytest

from sampan.cli.verbs.inspect.cp import _stays_below


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("a", True),
        ("a/b", True),
        (".", True),
        ("..", False),
        ("../x", False),
        ("a/../../x", False),
        ("../out-of-here/x", False),  # as a text it begins like the target
        ("../out", True),
    ],
)
def test_a_member_does_not_leave_the_target(tmp_path, name, stays):
    into = tmp_path / "out"
    assert _stays_below(into / name, into) is stays


def test_the_root_holds_everything(tmp_path):
    assert _stays_below(tmp_path, tmp_path.joinpath("/"))
