import pytest

from sampan.cmd.cluster.schedulers import configuration_in
from sampan.cmd.errors import CannotStart
from sampan.scheduler.settings import Configuration


def test_no_file_is_the_default():
    assert configuration_in("") == Configuration()


@pytest.mark.parametrize(
    ("content", "problem"),
    [("a: [", "line 1"), ("kind: Pod", "apiVersion: "), ("", "expected an object")],
)
def test_a_broken_file_says_what_is_wrong(tmp_path, content, problem):
    path = tmp_path / "scheduler.yaml"
    path.write_text(content)
    with pytest.raises(CannotStart, match="--scheduler-config") as caught:
        configuration_in(str(path))
    assert problem in str(caught.value)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(CannotStart, match="no such file"):
        configuration_in(str(tmp_path / "none"))
