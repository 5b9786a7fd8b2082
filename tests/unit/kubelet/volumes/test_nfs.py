"""NFS volumes: the machine's helper, or a clear word."""

import pytest

from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes import nfs
from sampan.kubelet.volumes.nfs import mount_nfs


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def helpers(tmp_path, monkeypatch):
    """As if the machine had a helper, and a mount that writes down what it was asked for."""
    folder = tmp_path / "sbin"
    folder.mkdir()
    monkeypatch.setattr(nfs, "PLACES", str(folder))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def test_without_the_helper_its_name_is_told(helpers, tmp_path):
    """[H6]"""
    with pytest.raises(VolumeFailure, match=r"mount\.nfs is not installed on this node"):
        mount_nfs("server:/x", str(tmp_path), ())


def test_the_machine_mounts_it(helpers, tmp_path):
    program(helpers, "mount.nfs", "")
    program(helpers, "mount", f'echo "$@" > {tmp_path}/asked')
    mount_nfs("server:/x", str(tmp_path / "here"), ("ro", "vers=4"))
    asked = (tmp_path / "asked").read_text().split()
    assert asked == ["-t", "nfs", "-o", "ro,vers=4", "server:/x", str(tmp_path / "here")]


def test_what_the_helper_says_is_passed_on(helpers, tmp_path):
    program(helpers, "mount.nfs", "")
    program(helpers, "mount", "echo access denied by server >&2; exit 32")
    with pytest.raises(VolumeFailure) as refused:
        mount_nfs("server:/x", str(tmp_path), ())
    assert str(refused.value) == (
        "mount failed: exit status 32\nMounting command: mount\n"
        f"Mounting arguments: -t nfs server:/x {tmp_path}\nOutput: access denied by server\n"
    )


def test_a_server_that_does_not_answer_is_given_up(helpers, tmp_path, monkeypatch):
    monkeypatch.setattr(nfs, "MOUNT_SECONDS", 0.05)
    program(helpers, "mount.nfs", "")
    program(helpers, "mount", "exec sleep 5")
    with pytest.raises(VolumeFailure, match="timed out"):
        mount_nfs("server:/x", str(tmp_path), ())
