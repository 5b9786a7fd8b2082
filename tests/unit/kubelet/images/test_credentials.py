import base64
import json

from sampan.core.metrics import Metrics
from sampan.kubelet.images.credentials import ImageCredentials, NodeCredentialSettings
from sampan.kubelet.images.reference import parse
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock


def config(**users):
    return json.dumps({"auths": {host: {"username": user, "password": "p"}
                                 for host, user in users.items()}})  # fmt: skip


def test_the_pods_own_secrets_are_tried_before_what_the_node_has(tmp_path):
    """[N10]"""
    file = tmp_path / "config.json"
    file.write_text(config(**{"registry.example/team": "node", "other.example": "stranger"}))
    pod = {"data": {".dockerconfigjson": base64.b64encode(
        config(**{"registry.example": "pod"}).encode()).decode()}}  # fmt: skip

    async def story():
        found = ImageCredentials(
            NodeCredentialSettings((str(file),)), clock=LoopClock(), metrics=Metrics()
        )
        return await found.of(parse("registry.example/team/app"), [pod])

    found = virtual_time.run(story())
    assert [one.username for one in found.all] == ["pod", "node"]
    assert [one.username for one in found.of_node] == ["node"]
