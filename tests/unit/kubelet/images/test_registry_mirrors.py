"""kubelet/images/registry_mirrors.py: mirrors come and go, other people's files stay."""

import tomllib

import pytest

from sampan.kubelet.images.registry_mirrors import MirrorRefused, hosts_toml, write_mirrors


def test_the_file_is_what_containerd_reads():
    found = tomllib.loads(hosts_toml("docker.io", ["http://a:5000", "https://b"]))
    assert found["server"] == "https://registry-1.docker.io"
    assert list(found["host"]) == ["http://a:5000", "https://b"]
    assert found["host"]["https://b"]["capabilities"] == ["pull", "resolve"]
    assert tomllib.loads(hosts_toml("x:5", []))["server"] == "https://x:5"
    named = ["http://a:5000", "http://x:5"]
    assert tomllib.loads(hosts_toml("x:5", named))["server"] == "http://x:5"


def test_mirrors_go_with_their_flags(tmp_path):
    write_mirrors(tmp_path, {"docker.io": ["https://m"], "x": ["https://m"]})
    write_mirrors(tmp_path, {"x": ["https://n"]})
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert "https://n" in (tmp_path / "x" / "hosts.toml").read_text()


def test_a_person_s_file_stays(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "hosts.toml").write_text("server = 'https://own'\n")
    write_mirrors(tmp_path, {})
    assert (tmp_path / "own" / "hosts.toml").exists()
    with pytest.raises(MirrorRefused, match="somebody else"):
        write_mirrors(tmp_path, {"own": ["https://m"]})
