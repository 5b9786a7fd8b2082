import pytest

from sampan.cmd.diagnosis.service_diagnosis import PROXY_NAME, name_lines, service_lines


def service(name="web", namespace="default", **spec):
    base = {"clusterIP": "10.96.0.5", "type": "ClusterIP", "ports": [{"port": 80}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": base | spec}


def pod(name, ready, phase="Running", **labels):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"ports": [{"name": "http", "containerPort": 80}]}]},
        "status": {"phase": phase, "conditions": conditions},
    }


def piece(*addresses, name="web", namespace="default"):
    return {
        "metadata": {"namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each]} for each in addresses],
        "ports": [{"name": "", "port": 80}],
    }


@pytest.mark.parametrize(
    ("obj", "slices", "pods", "said"),
    [
        (service(selector={"app": "web"}), [piece("10.244.0.2")], [], "leads to 1 endpoint(s)"),
        (service(), [], [], "no selector"),
        (service(selector={"app": "web"}), [], [], "No pod of the namespace has a label app"),
        (
            service(selector={"app": "web"}),
            [],
            [pod("a", True, app="wep")],
            "pods with app = wep, none with web",
        ),
        (
            service(selector={"app": "web"}),
            [],
            [pod("a", False, "Pending", app="web")],
            "`sampan why pod/a`",
        ),
        (
            service(selector={"app": "web"}, ports=[{"port": 80, "targetPort": "grpc"}]),
            [piece("10.244.0.2")],
            [pod("a", True, app="web")],
            "Port 80: a has no port named grpc",
        ),
        (
            service(selector={"app": "web"}, ports=[{"port": 80, "targetPort": "grpc"}]),
            [piece()],
            [pod("a", True, app="web")],
            "0 of them not Ready.\nPort 80: a has no port named grpc",
        ),
        (service(type="ExternalName", externalName="x.org"), [], [], "stands for x.org"),
        (service(type="LoadBalancer"), [piece("10.244.0.2")], [], "an older Service has its port"),
        (
            service(type="LoadBalancer", loadBalancerClass="a.example/b"),
            [piece("10.244.0.2")],
            [],
            "whoever serves the class a.example/b",
        ),
        (
            service(internalTrafficPolicy="Local"),
            [piece("10.244.0.2")],
            [],
            "endpoints of their own node only, and these are on no node",
        ),
        (
            {**service(), "metadata": {"name": "s", "labels": {PROXY_NAME: "mine"}}},
            [piece("10.244.0.2")],
            [],
            "leaves it to another proxy",
        ),
    ],
)
def test_what_is_said_of_a_service(obj, slices, pods, said):
    assert said in "\n".join(service_lines(obj, slices, pods, "cluster.local"))


@pytest.mark.parametrize(
    ("name", "namespace", "said"),
    [
        ("web", "default", "web is web.default.svc.cluster.local: 10.96.0.5"),
        ("web.default", "other", "10.96.0.5"),
        ("web", "other", "There is a Service web in the namespace(s) default"),
        ("web.default.svc.cluster.local", "other", "10.96.0.5"),
        ("web.default.svc.cluster.local.", "other", "10.96.0.5"),
        ("www.example.org", "default", "machine's name servers"),
        ("web.other", "default", "There is a Service web in the namespace(s) default"),
        ("six", "default", "six is six.default.svc.cluster.local: fd00::6"),
        ("bare", "default", "only while it has a ready endpoint"),
    ],
)
def test_what_is_said_of_a_name(name, namespace, said):
    services = [service(), service("bare", clusterIP="None"), service("six", clusterIP="fd00::6")]
    slices = [piece("10.244.0.2")]
    found = "\n".join(name_lines(name, namespace, services, slices, "cluster.local"))
    assert said in found, found
