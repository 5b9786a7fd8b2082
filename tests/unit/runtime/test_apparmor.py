"""runtime/apparmor.py: the profile is loaded where there is AppArmor, and nowhere else claimed."""

import os
import shutil
import subprocess

import pytest

from sampan.runtime import apparmor

SEARCHED = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


@pytest.fixture
def enabled(tmp_path):
    file = tmp_path / "enabled"
    file.write_text("Y\n")
    return file


def parser_that(tmp_path, script):
    program = tmp_path / "bin" / apparmor.PARSER
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}:/usr/bin:/bin"


def test_without_apparmor_nothing_is_loaded_and_nothing_said(tmp_path):
    search_path = parser_that(tmp_path, "exit 1")
    assert apparmor.load_default(search_path, tmp_path / "missing") == ""
    (tmp_path / "off").write_text("N\n")
    assert apparmor.load_default(search_path, tmp_path / "off") == ""


def test_the_parser_is_given_the_profile_to_replace(tmp_path, enabled):
    search_path = parser_that(tmp_path, f'echo "$@" >{tmp_path}/words; cat >{tmp_path}/given')
    assert apparmor.load_default(search_path, enabled) == ""
    assert (tmp_path / "given").read_text() == apparmor.PROFILE
    assert (tmp_path / "words").read_text().split()[0] == "--replace"


def test_what_keeps_it_from_being_loaded_is_said(tmp_path, enabled):
    assert "apt-get install apparmor" in apparmor.load_default("/nonexistent", enabled)
    search_path = parser_that(tmp_path, "echo no permission >&2; exit 1")
    assert apparmor.load_default(search_path, enabled) == "apparmor_parser: no permission"


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        ("docker-default (enforce)\nsampan-default (enforce)\n", True),
        ("sampan-default-2 (enforce)\n", False),
        ("", False),
    ],
)
def test_only_what_the_kernel_lists_is_loaded(text, loaded, tmp_path):
    listed = tmp_path / "profiles"
    assert not apparmor.is_loaded(listed)
    listed.write_text(text)
    assert apparmor.is_loaded(listed) is loaded


@pytest.mark.skipif(not shutil.which(apparmor.PARSER, path=SEARCHED), reason="no apparmor_parser")
def test_the_real_parser_compiles_it():
    """Without a kernel that could load it."""
    parser = shutil.which(apparmor.PARSER, path=SEARCHED)
    done = subprocess.run(
        [parser, "--skip-kernel-load", "--skip-cache", "--stdout"],
        input=apparmor.PROFILE.encode(), capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert apparmor.DEFAULT_PROFILE.encode() in done.stdout
