from sampan.api.resources import ENDPOINT_SLICES, SERVICES
from sampan.network.dns.publish import NAMESPACE, endpoint_slice, publish
from tests.support.virtual_time import LoopClock, run
from tests.support.worlds.control_plane import ControlPlane


def story(test):
    async def inside():
        async with ControlPlane(list) as plane:
            await test(plane)

    def test_run():
        run(inside())

    test_run.__name__ = test.__name__
    return test_run


async def made_known(plane, *endpoint):
    client = plane.as_component("system:sampan:cluster-dns")
    await publish(client, ["10.96.0.10"], [endpoint_slice("n1", endpoint)], LoopClock())


@story
async def test_a_second_start_finds_the_service_and_corrects_the_endpoint(plane):
    await made_known(plane, "10.244.0.1", 53)
    await made_known(plane, "10.244.7.1", 5353)
    service = await plane.client.get(SERVICES, NAMESPACE, "kube-dns")
    assert service["spec"]["clusterIP"] == "10.96.0.10"
    piece = await plane.client.get(ENDPOINT_SLICES, NAMESPACE, "kube-dns-n1")
    assert piece["endpoints"][0]["addresses"] == ["10.244.7.1"]
    assert {port["port"] for port in piece["ports"]} == {5353}


@story
async def test_a_name_server_of_somebody_else_is_left_alone(plane):
    theirs = {
        "metadata": {"name": "kube-dns"},
        "spec": {"selector": {"k8s-app": "kube-dns"}, "ports": [{"port": 53}]},
    }
    await plane.client.create(SERVICES, theirs, NAMESPACE)
    await made_known(plane, "10.244.0.1", 53)
    found = await plane.client.list(ENDPOINT_SLICES, NAMESPACE)
    assert not [each for each in found.items if each["metadata"]["name"] == "kube-dns-n1"]
