import pytest

from sampan.api.rules.kubelet_paths import connects


@pytest.mark.parametrize("path", ["/exec/a", "exec", "//attach", "/./run/x", "/a/../portForward/x"])
def test_what_runs_something_or_connects_is_known_however_it_is_written(path):
    assert connects(path)
    assert connects(path.replace("e", "%65").replace("r", "%72"))


@pytest.mark.parametrize("path", ["", "/", "/metrics", "/logs/exec", "/executor", "/pods/run"])
def test_others_are_others(path):
    assert not connects(path)
