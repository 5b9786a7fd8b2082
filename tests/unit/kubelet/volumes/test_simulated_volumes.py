from sampan.api.resources import CONFIG_MAPS
from tests.support import virtual_time
from tests.support.worlds.simulated_node import SimulatedNode

WORDS = {"name": "v", "configMap": {"name": "words"}}


def test_a_simulated_pod_waits_for_its_config_map_and_then_runs():
    """[N15, R3] event-driven: it does not wait for the next try"""

    async def story():
        async with SimulatedNode() as node:
            mounts = [{"name": "v", "mountPath": "/x", "subPath": "word"}]
            container = {"name": "main", "image": "app:1", "volumeMounts": mounts}
            await node.make(volumes=[WORDS], containers=[container])
            message = 'MountVolume.SetUp failed for volume "v" : configmap "words" not found'
            await node.until(lambda: ("FailedMount", message) in node.events())
            assert node.status()["phase"] == "Pending"
            assert "run_sandbox" not in node.runtime.calls
            before = node.clock.monotonic()
            await node.api.create(CONFIG_MAPS, {"metadata": {"name": "words"}}, "default")
            await node.until_phase("Running")
            assert node.clock.monotonic() - before < 0.3

    virtual_time.run(story())


def test_every_other_volume_is_taken_as_given():
    """[N15] nothing is mounted, not even what a real node would refuse"""

    async def story():
        async with SimulatedNode() as node:
            sources = [{"serviceAccountToken": {"path": "token"}}]
            volumes = [
                {"name": "e", "emptyDir": {}},
                {"name": "n", "nfs": {"server": "s", "path": "/"}},
                {"name": "p", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "t", "projected": {"sources": sources}},
            ]
            await node.make(volumes=volumes)
            await node.until_phase("Running")
            assert not any("token" in call for call in node.api.calls)
            await node.delete(grace_seconds=1)
            await node.until(lambda: not node.has())

    virtual_time.run(story())
