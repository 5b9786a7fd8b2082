"""`sampan why` and `sampan schedule --dry-run` against a served API, as a user runs them."""

import asyncio

import pytest

from sampan.api.resources import EVENTS, NODES, PODS
from sampan.api.schema.published import Schema
from sampan.client import kubeconfig, rest
from sampan.cmd.verbs import schedule, why
from sampan.core.clock import SystemClock
from tests.support.parts.served_api import served_api

pytestmark = pytest.mark.slow


async def made(path):
    """A node, a pod that does not fit, and a pod whose image cannot be pulled."""
    loaded = kubeconfig.load(str(path), {}, "/")
    client = rest.connect(loaded.connection(), clock=SystemClock())
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    ready = [{"type": "Ready", "status": "True"}]
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
    }  # fmt: skip
    await client.create(NODES, node)
    await client.patch(NODES, "", "n", {"spec": {"taints": None}}, patch_type="merge")
    requests = {"requests": {"cpu": "4"}}
    large = pod("large", {"name": "c", "image": "web", "resources": requests})
    await client.create(PODS, large, "default")
    broken = pod("broken", {"name": "c", "image": "web:9"})
    broken["spec"]["nodeName"] = "n"
    stored = await client.create(PODS, broken, "default")
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    status = {"name": "c", "image": "web:9", "imageID": "", "ready": False, "restartCount": 0,
              "state": {"waiting": waiting}}  # fmt: skip
    told = {
        "phase": "Pending", "containerStatuses": [status],
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
    }  # fmt: skip
    await client.patch(PODS, "default", "broken", {"status": told}, subresource="status")
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "broken.1"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "broken",
                           "uid": stored["metadata"]["uid"],
                           "fieldPath": "spec.containers{c}"},
        "reason": "Failed", "message": 'Failed to pull image "web:9": 401 Unauthorized',
        "type": "Warning", "count": 1, "lastTimestamp": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    await client.create(EVENTS, event, "default")
    await client.close()


def pod(name, container):
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container]},
    }  # fmt: skip


def test_a_user_is_told_why_and_what_to_do(tmp_path, capsys):
    """[X2]"""
    with served_api(Schema.load(), tmp_path) as served:
        asyncio.run(made(served.admin))
        assert why.run("pod/large", "default", str(served.admin), as_json=False) == 0
        said = capsys.readouterr().out
        assert "0/1 nodes are available: 1 Insufficient cpu." in said
        assert "lower cpu request to 2" in said
        assert why.run("pod/broken", "default", str(served.admin), as_json=False) == 0
        said = capsys.readouterr().out
        assert "pod default/broken is on n and is not Ready." in said
        assert 'container c   ImagePullBackOff   Failed to pull image "web:9": 401' in said
        assert "imagePullSecrets" in said
        assert why.run("pod/none", "default", str(served.admin), as_json=False) == 1
        assert 'pods "none" not found' in capsys.readouterr().err
        assert why.run("pod/large", "default", str(served.nobody), as_json=False) == 1
        assert "forbidden" in capsys.readouterr().err
        wanted = tmp_path / "pods.yaml"
        wanted.write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
        asked = {"dry": True, "cluster": "", "namespace": "default"}
        assert schedule.run([str(wanted)], kubeconfig_path=str(served.admin), **asked) == 0
        assert "default/p   n" in capsys.readouterr().out
