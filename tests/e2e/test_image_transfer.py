"""`sampan image pull|save|load` and --registry-mirror, with a real registry and containerd."""

import os
import subprocess

import pytest

from tests.support.parts.sampan_process import RUNTIME, environment, sampan_command

pytestmark = [pytest.mark.slow, pytest.mark.containerd]


def test_images_come_from_a_mirror_and_go_to_files_and_back(
    own_cluster, registry, registry_image, archive, tmp_path
):
    assert registry_image
    mirror = f"registry.test=http://{registry.address}"
    own_cluster.up("--runtime", RUNTIME, "--registry-mirror", mirror, seconds=90)
    name = "registry.test/test/busybox:1"
    assert f"pulled {name}" in own_cluster.run("image", "pull", name)
    kubectl = own_cluster.kubectl
    kubectl("run", "web", f"--image={name}", "--", "sleep", "1000")
    kubectl.wait_phase("web", "Running")
    kubectl("delete", "pod", "web", "--now")
    saved = tmp_path / "saved.tar"
    assert "MiB" in own_cluster.run("image", "save", name, "-f", str(saved))
    own_cluster.run("image", "rm", name)
    assert name not in own_cluster.run("image", "list")
    assert f"imported {name}" in own_cluster.run("image", "import", str(saved))
    # From another engine, whose part is played by a program that has the archive.
    engine = tmp_path / "podman"
    engine.write_text(f'#!/bin/sh\ncp {archive} "$3"\n')
    engine.chmod(0o755)
    command = sampan_command("image", "load", "x", "--from", "podman")
    done = subprocess.run(
        [*command, "--data-dir", str(own_cluster.data_dir)], capture_output=True, text=True,
        timeout=120, env={**environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert "imported localhost/test/busybox:1" in done.stdout, done.stderr
    command = sampan_command("image", "pull", "registry.test/no/such:1")
    done = subprocess.run(
        [*command, "--data-dir", str(own_cluster.data_dir)], capture_output=True, text=True,
        timeout=120, env=environment(),
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
