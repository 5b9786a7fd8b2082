"""Devices of the node that containers are given."""

import os

import pytest

from sampan.kubelet.contracts.runtime import Device, RuntimeFailure
from sampan.kubelet.native.machine import given_devices


def test_a_device_is_found_behind_its_link_and_shown_where_it_is_wanted(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    [(found, access)] = given_devices([Device("/dev/x", str(tmp_path / "link"), "mr")])
    null = os.stat("/dev/null").st_rdev
    assert (found["path"], found["type"], access) == ("/dev/x", "c", "rm")
    assert (found["major"], found["minor"]) == (os.major(null), os.minor(null))


def test_a_directory_stands_for_all_that_is_in_it():
    found = given_devices([Device("/dev/inside", "/dev/pts/..", "rw")])
    assert "/dev/inside/null" in [device["path"] for device, _ in found]


def test_what_is_no_device_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "nothing"):
        with pytest.raises(RuntimeFailure):
            given_devices([Device("/dev/x", str(path))])
