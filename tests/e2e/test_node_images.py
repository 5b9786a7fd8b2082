"""Images that need a login, and images that go when the disk is full [N10, N18]."""

import asyncio
import json
import os
import platform
import sys

import pytest

from sampan.core.elf import architecture
from sampan.kubelet.images.archive import ArchiveFile, ImageSettings, build_archive
from sampan.kubelet.images.image_gc import Disk, ImageGCManager, ImageGCPolicy
from tests.support.parts.images import busybox_archive
from tests.support.parts.private_runtime import private_runtime, why_not
from tests.support.parts.processes import eventually
from tests.support.parts.registry import ROBOT, Registry
from tests.support.parts.sampan_process import RUNTIME, registry_flags

pytestmark = [
    pytest.mark.containerd,
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()) or os.geteuid() != 0, reason="needs root and containerd"),
]


def test_a_full_disk_costs_what_can_be_pulled_again_and_nothing_else(tmp_path, registry_image):
    async def story():
        async with private_runtime(tmp_path / "data") as node:
            imported = "localhost/test/imported:1"
            own = ImageSettings(architecture(platform.machine()))
            await node.import_image(build_archive(imported, {"a": ArchiveFile(b"a")}, own))
            await node.runtime.pull_image(registry_image, None)
            garbage = ImageGCManager(
                node.runtime,
                str(tmp_path),
                settings=ImageGCPolicy(min_age_seconds=0),
                clock=node.clock,
                warn=lambda reason, message: None,
                disk=lambda _: Disk(capacity_bytes=10**9, available_bytes=0),
            )
            before = {tag for one in await node.runtime.images() for tag in one.tags}
            assert {imported, registry_image} <= before
            assert await garbage.collect() > 0
            left = {tag for one in await node.runtime.images() for tag in one.tags}
            assert before - left == {registry_image}

    asyncio.run(story())


@pytest.fixture
def locked_registry(tmp_path):
    registry = Registry(tmp_path, ROBOT)
    yield registry
    registry.stop()


PLUGIN = """#!{python}
import json, sys
asked = json.load(sys.stdin)
assert asked["kind"] == "CredentialProviderRequest", asked
host = asked["image"].split("/")[0]
print(json.dumps({{
    "kind": "CredentialProviderResponse",
    "apiVersion": asked["apiVersion"],
    "cacheKeyType": "Registry",
    "cacheDuration": "1h",
    "auth": {{host: {{"username": "{user}", "password": "{password}"}}}},
}}))
"""
PROVIDERS = """
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: login
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["{address}/plugin"]
  defaultCacheDuration: 10m
"""


def provider_flags(directory, registry):
    plugin = directory / "login"
    plugin.write_text(
        PLUGIN.format(python=sys.executable, user=ROBOT.user, password=ROBOT.password)
    )
    plugin.chmod(0o755)
    config = directory / "providers.yaml"
    config.write_text(PROVIDERS.format(address=registry.address))
    return [
        "--image-credential-provider-config", str(config),
        "--image-credential-provider-bin-dir", str(directory),
    ]  # fmt: skip


def run(kubectl, name, image, *, secret="", policy="Always"):
    spec = {
        "containers": [{
            "name": "c", "image": image, "imagePullPolicy": policy, "command": ["sleep", "1000"],
        }],
        "imagePullSecrets": [{"name": secret}] if secret else [],
        "terminationGracePeriodSeconds": 0,
    }  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    kubectl.apply(json.dumps(pod))


def waiting(kubectl, name):
    statuses = kubectl.get("pod", name).get("status", {}).get("containerStatuses") or [{}]
    return (statuses[0].get("state") or {}).get("waiting") or {}


def test_a_registry_that_wants_a_login_gets_it_from_secret_node_or_plugin(
    own_cluster, locked_registry, archive, tmp_path
):
    """[N10] and `sampan image rm`"""
    image = locked_registry.push(archive, "test/busybox", "1")
    another = busybox_archive(tmp_path / "another.tar", "another:1", mark="another")
    for_plugin = locked_registry.push(another, "plugin/busybox", "1")
    flags = (*registry_flags(locked_registry.address), *provider_flags(tmp_path, locked_registry))
    own_cluster.up("--runtime", RUNTIME, *flags)
    kubectl = own_cluster.kubectl
    run(kubectl, "nobody", image)
    said = eventually(lambda: waiting(kubectl, "nobody").get("message"))
    assert waiting(kubectl, "nobody")["reason"] in ("ErrImagePull", "ImagePullBackOff")
    refusals = ("no basic auth credentials", "401 unauthorized", "unauthorized: authentication")
    assert any(each in said.lower() for each in refusals), said
    run(kubectl, "by-plugin", for_plugin)
    kubectl.wait_phase("by-plugin", "Running")
    kubectl(
        "create", "secret", "docker-registry", "login", "--docker-server", locked_registry.address,
        "--docker-username", ROBOT.user, "--docker-password", ROBOT.password,
    )  # fmt: skip
    run(kubectl, "by-secret", image, secret="login")
    kubectl.wait_phase("by-secret", "Running")
    # What took a login is no other pod's, although it is there now.
    run(kubectl, "thief", image, policy="IfNotPresent")
    eventually(lambda: "unauthorized" in waiting(kubectl, "thief").get("message", "").lower())
    # The node's own file is found without a restart.
    login = {"username": ROBOT.user, "password": ROBOT.password}
    file = own_cluster.data_dir / "kubelet" / "config.json"
    file.write_text(json.dumps({"auths": {locked_registry.address: login}}))
    run(kubectl, "by-node", image)
    kubectl.wait_phase("by-node", "Running")
    kubectl("delete", "pod", "--all", "--now")
    # The same image by another name stays when this one goes.
    said = own_cluster.run("image", "import", str(archive))
    same = said.removeprefix("imported ").split()[0]
    assert f"removed {image}" in own_cluster.run("image", "rm", image)
    left = own_cluster.run("image", "list")
    assert image not in left
    assert for_plugin in left
    assert same in left
    assert f"removed {same}" in own_cluster.run("image", "rm", same)
    assert same not in own_cluster.run("image", "list")
    with pytest.raises(AssertionError, match="no images are called"):
        own_cluster.run("image", "rm", image)
    own_cluster.stop()
