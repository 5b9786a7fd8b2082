import orjson

from sampan.network.services.health_checks import Check, answer, check_of


def service(**spec):
    return {
        "metadata": {"name": "s", "namespace": "d"},
        "spec": {"type": "LoadBalancer", "healthCheckNodePort": 31000, **spec},
    }


def test_only_services_with_external_policy_local_are_checked():
    assert check_of(service(externalTrafficPolicy="Local")) == Check("d/s", 31000)
    assert check_of(service(externalTrafficPolicy="Cluster")) is None
    assert check_of(service(externalTrafficPolicy="Local", type="NodePort")) is None


def test_a_node_without_endpoints_says_that_it_cannot_serve():
    check = Check("d/s", 31000)
    assert answer(check, 0).status == 503
    found = answer(check, 2)
    assert found.status == 200
    assert orjson.loads(found.body)["service"] == {"namespace": "d", "name": "s"}
    assert orjson.loads(found.body)["localEndpoints"] == 2
    assert ("X-Load-Balancing-Endpoint-Weight", "2") in found.headers
