"""kubeconfig files as `config` changes them: nothing of one file gets into another."""

import io
import os
import stat

import pytest
import yaml

from sampan.cli.main import main
from sampan.cli.session import Io


def entry(name, **fields):
    return {"name": name, **fields}


def config(name, token, **more):
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [entry(name, cluster={"server": f"https://{name}"})],
        "users": [entry(name, user={"token": token})],
        "contexts": [entry(name, context={"cluster": name, "user": name})], **more,
    }  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_text(yaml.safe_dump(config(name, f"secret-{name}")))
    return tmp_path


def run(*words, kubeconfig="a:b"):
    out, err = io.StringIO(), io.StringIO()
    environment = {"KUBECONFIG": kubeconfig, "HOME": "/nonexistent"}
    code = main(["config", *words], io=Io(io.BytesIO(), out, err, environment))
    return code, out.getvalue() + err.getvalue()


def read(path):
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    "words",
    [
        ("use-context", "b"),
        ("set-context", "b", "--namespace=x"),
        ("delete-context", "b"),
        ("rename-context", "b", "c"),
        ("set", "users.b.token", "other"),
        ("unset", "clusters"),
    ],
)
def test_credentials_stay_in_their_file(files, words):
    code, said = run(*words)
    assert code == 0, said
    assert "secret-b" not in (files / "a").read_text()
    assert "secret-a" not in (files / "b").read_text()


def test_a_change_goes_to_the_file_that_holds_the_entry(files):
    before = (files / "a").read_bytes()
    run("set-context", "b", "--namespace=x")
    assert (files / "a").read_bytes() == before
    assert read(files / "b")["contexts"][0]["context"]["namespace"] == "x"


def test_a_new_entry_goes_to_the_first_file_that_exists(files):
    run("set-cluster", "new", "--server=https://new", kubeconfig="nope:b:a")
    assert "new" in [one["name"] for one in read(files / "b")["clusters"]]
    assert not (files / "nope").exists()


def test_bytes_that_are_no_base64_change_nothing(files):
    before = (files / "a").read_bytes()
    code, said = run("set", "clusters.a.certificate-authority-data", "no base64!")
    assert (code, said) == (
        1, "error: error decoding input value: illegal base64 data at input byte 2\n"
    )  # fmt: skip
    assert (files / "a").read_bytes() == before


def test_a_link_stays_one_and_the_file_is_private(files):
    (files / "link").symlink_to("a")
    run("set-context", "a", "--namespace=x", kubeconfig="link")
    assert (files / "link").is_symlink()
    assert stat.S_IMODE((files / "a").stat().st_mode) == 0o600
    assert sorted(os.listdir(files)) == ["a", "b", "link"]


def test_whoever_else_changes_the_file_is_waited_for_by_the_user(files):
    (files / "a.lock").touch()
    code, said = run("use-context", "b")
    assert (code, said) == (1, "error: open a.lock: file exists\n")


def test_what_we_do_not_know_stays(files):
    (files / "a").write_text(yaml.safe_dump(config("a", "t", ours={"x": 1})))
    run("set-context", "a", "--namespace=x")
    assert read(files / "a")["ours"] == {"x": 1}
