import pytest

from sampan.core.http.origin import Origin
from sampan.network.ingress.backends import Unavailable, endpoints_of, why_not_served
from sampan.network.ingress.routing import Backend

WEB = Backend("shop", "web", 80)


def service(**spec):
    ports = [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": ports, **spec}}


def piece(*endpoints, **more):
    return {
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}, {"name": "other", "port": 9}],
        "endpoints": list(endpoints),
        **more,
    }


def endpoint(address, node="n1", **conditions):
    return {"addresses": [address], "nodeName": node, "conditions": conditions}


def found(slices, backend=WEB, of=None, simulated=()):
    return endpoints_of(backend, of or service(), slices, lambda node: node in simulated)


@pytest.mark.parametrize("port", [80, "http"])
def test_ready_endpoints_answer_at_the_port_of_the_slice(port):
    slices = [
        piece(endpoint("10.0.0.1", ready=True), endpoint("10.0.0.2", ready=False)),
        piece(endpoint("10.0.0.3")),
        piece(endpoint("other.example"), addressType="FQDN"),
    ]
    origins = [Origin("http", "10.0.0.1", 8080), Origin("http", "10.0.0.3", 8080)]
    assert found(slices, Backend("shop", "web", port)) == origins


def test_those_that_end_serve_while_no_other_is_ready():
    ending = endpoint("10.0.0.1", ready=False, serving=True, terminating=True)
    assert found([piece(ending)]) == [Origin("http", "10.0.0.1", 8080)]
    assert found([piece(ending, endpoint("10.0.0.2"))]) == [Origin("http", "10.0.0.2", 8080)]


def test_a_port_that_speaks_https_is_spoken_to_so():
    secure = service(ports=[{"name": "http", "port": 80, "appProtocol": "https"}])
    assert found([piece(endpoint("10.0.0.1"))], of=secure) == [Origin("https", "10.0.0.1", 8080)]


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        ([], "has no ready endpoint"),
        ([piece(endpoint("10.0.0.1", ready=False))], "has no ready endpoint"),
        ([piece(endpoint("10.0.0.1", node="fake"))], "has only simulated pods"),
        ([piece(endpoint("127.0.0.1"))], "has no endpoint that may be connected to"),
        ([piece(endpoint("169.254.169.254"))], "has no endpoint that may be connected to"),
        ([piece(endpoint("::1"))], "has no endpoint that may be connected to"),
    ],
)
def test_who_has_nobody_to_ask_is_unavailable(slices, why):
    answer = found(slices, simulated=("fake",))
    assert isinstance(answer, Unavailable)
    assert answer.status == 503
    assert why in answer.why


@pytest.mark.parametrize(
    ("backend", "of", "reason"),
    [
        (WEB, None, "ServiceNotFound"),
        (WEB, service(type="ExternalName"), "ExternalNameNotSupported"),
        (Backend("shop", "web", 81), service(), "ServicePortNotFound"),
        (Backend("shop", "web", "dns"), service(), "ServicePortNotFound"),
        (Backend("shop", "", 0, "Bucket/b"), None, "ResourceBackendNotSupported"),
        (
            WEB,
            service(ports=[{"port": 80, "appProtocol": "kubernetes.io/h2c"}]),
            "ProtocolNotSupported",
        ),
    ],
)
def test_what_leads_nowhere_has_a_reason(backend, of, reason):
    problem = why_not_served(backend, of)
    assert problem is not None
    assert problem[0] == reason
    answer = endpoints_of(backend, of, [piece(endpoint("10.0.0.1"))], lambda _: False)
    assert answer == Unavailable(503, problem[1])
