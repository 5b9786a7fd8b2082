"""Rows of services and what they lead to."""

import pytest

from sampan.apiserver.printers import network

NOW = 1_700_000_000.0
META = {"name": "a"}


@pytest.mark.parametrize(
    ("spec", "status", "row"),
    [
        ({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"],
          "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}, {},
         ["ClusterIP", "10.0.0.1", "<none>", "80/TCP,53/UDP"]),
        ({"type": "NodePort", "clusterIPs": ["None"], "externalIPs": ["1.2.3.4"],
          "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}]}, {},
         ["NodePort", "None", "1.2.3.4", "80:30000/TCP"]),
        ({"type": "LoadBalancer"}, {}, ["LoadBalancer", "<none>", "<pending>", "<none>"]),
        ({"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1"}]}},
         ["LoadBalancer", "<none>", "1,h", "<none>"]),
        ({"type": "ExternalName", "externalName": "x.y"}, {},
         ["ExternalName", "<none>", "x.y", "<none>"]),
    ],
)  # fmt: skip
def test_services(spec, status, row):
    obj = {"metadata": META, "spec": spec, "status": status}
    assert network.SERVICES.cells(obj, NOW)[1:5] == row


def test_endpoints_show_three_and_count_the_rest():
    subset = {
        "addresses": [{"ip": "10.0.0.1"}, {"ip": "fd::1"}],
        "ports": [{"port": 80}, {"port": 443}],
    }
    assert network.ENDPOINTS.cells({"subsets": [subset]}, NOW)[1] == (
        "10.0.0.1:80,[fd::1]:80,10.0.0.1:443 + 1 more..."
    )
    assert network.ENDPOINTS.cells({}, NOW)[1] == "<none>"
    piece = {"addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}, {}]}
    assert network.ENDPOINT_SLICES.cells(piece, NOW)[1:4] == ["IPv4", "80,x,*", "<unset>"]


def test_ingresses():
    rules = [{"host": host} for host in "abcd"]
    obj = {"metadata": META, "spec": {"rules": rules, "tls": [{}], "ingressClassName": "n"}}
    assert network.INGRESSES.cells(obj, NOW)[1:5] == ["n", "a,b,c + 1 more...", "", "80, 443"]
    assert network.INGRESSES.cells({}, NOW)[1:5] == ["<none>", "*", "", "80"]
    given = {"kind": "K", "apiGroup": "g", "name": "n"}
    obj = {"spec": {"controller": "c", "parameters": given}}
    assert network.INGRESS_CLASSES.cells(obj, NOW)[1:3] == ["c", "K.g/n"]


def test_policies_and_addresses():
    assert network.NETWORK_POLICIES.cells({"spec": {"podSelector": {}}}, NOW)[1] == "<none>"
    parent = {"resource": "services", "namespace": "default", "name": "kubernetes"}
    obj = {"spec": {"parentRef": parent}}
    assert network.IP_ADDRESSES.cells(obj, NOW)[1] == "services/default/kubernetes"
    assert network.SERVICE_CIDRS.cells({"spec": {"cidrs": ["a", "b"]}}, NOW)[1] == "a,b"
