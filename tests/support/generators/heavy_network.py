"""Services, endpoints, policies as heavy as validation lets them be.

Job: `heavy_network`: by name, where one is created, how many items it may have, and what makes it.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj
from tests.support.generators.heavy_pieces import (
    LABELS,
    Make,
    each,
    expressions,
    keys,
    numbered,
    one_of,
)


def _port(number: int) -> Obj:
    return {
        "name": f"n{number}",
        "port": number % 65_535 + 1,
        "protocol": "TCP" if number < 65_535 else "UDP",
    }


def _address(number: int) -> str:
    return f"10.{number // 65_536 % 256}.{number // 256 % 256}.{number % 256}"


def _of_ports(more: Obj) -> Make:
    return lambda n: {
        "metadata": {"name": "x"},
        "spec": {"selector": LABELS, "ports": each(n, _port), **more},
    }


def heavy_network() -> Iterator[tuple[str, str, int, Make]]:
    core, named = "/api/v1/namespaces/{namespace}", {"metadata": {"name": "x"}}
    for name, more in (
        ("", {}),
        (", headless", {"clusterIP": "None"}),
        (" of node", {"type": "NodePort"}),
        (" of balancers", {"type": "LoadBalancer"}),
    ):
        yield (
            f"Service of ports{name}",
            f"{core}/services",
            5_000,
            _of_ports(more),
        )
    yield (
        "Service of labels",
        f"{core}/services",
        60_000,
        lambda n: {**named, "spec": {"selector": keys(n), "ports": [{"port": 1}]}},
    )
    yield (
        "Service of addresses",
        f"{core}/services",
        60_000,
        lambda n: {**named, "spec": {"ports": [{"port": 1}], "externalIPs": each(n, _address)}},
    )
    yield (
        "Service of sources",
        f"{core}/services",
        50_000,
        lambda n: {
            **named,
            "spec": {
                "ports": [{"port": 1}],
                "type": "LoadBalancer",
                "loadBalancerSourceRanges": each(n, lambda k: f"{_address(k)}/32"),
            },
        },
    )
    yield (
        "Endpoints of addresses",
        f"{core}/endpoints",
        40_000,
        lambda n: {
            **named,
            "subsets": [
                {"addresses": each(n, lambda k: {"ip": _address(k)}), "ports": [{"port": 1}]}
            ],
        },
    )
    yield (
        "Endpoints of ports",
        f"{core}/endpoints",
        20_000,
        lambda n: {
            **named,
            "subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": each(n, _port)}],
        },
    )
    yield (
        "Endpoints of subsets",
        f"{core}/endpoints",
        12_000,
        lambda n: {
            **named,
            "subsets": each(
                n,
                lambda k: {"addresses": [{"ip": _address(k)}], "ports": [{"port": k % 65_535 + 1}]},
            ),
        },
    )
    slices = "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    owned = {
        "metadata": {"name": "x", "labels": {"kubernetes.io/service-name": "x"}},
        "addressType": "IPv4",
    }
    yield (
        "EndpointSlice of endpoints",
        slices,
        1_000,
        lambda n: {
            **owned,
            "endpoints": each(n, lambda k: {"addresses": [_address(k)], "hostname": f"h{k}"}),
            "ports": [{"name": "n", "port": 1}],
        },
    )
    yield (
        "EndpointSlice of ports",
        slices,
        20_000,
        lambda n: {**owned, "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": each(n, _port)},
    )
    yield (
        "EndpointSlice of hints",
        slices,
        1_000,
        lambda n: {
            **owned,
            "endpoints": each(
                n, lambda k: {"addresses": [_address(k)], "hints": {"forZones": numbered(8)}}
            ),
            "ports": [{"name": "n", "port": 1}],
        },
    )
    policies = "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"

    def policy(rule: Obj) -> Obj:
        return {**named, "spec": {"podSelector": {}, "ingress": [rule], "egress": []}}

    yield (
        "NetworkPolicy of ranges",
        policies,
        20_000,
        lambda n: policy({"from": each(n, lambda k: {"ipBlock": {"cidr": f"{_address(k)}/32"}})}),
    )
    yield (
        "NetworkPolicy of exceptions",
        policies,
        20_000,
        lambda n: policy(
            {
                "from": [
                    {
                        "ipBlock": {
                            "cidr": "10.0.0.0/8",
                            "except": each(n, lambda k: f"{_address(k)}/32"),
                        }
                    }
                ]
            }
        ),
    )
    yield (
        "NetworkPolicy of selectors",
        policies,
        12_000,
        lambda n: policy(
            {
                "from": each(
                    n,
                    lambda k: {
                        "podSelector": {"matchLabels": {f"k{k}": "v"}},
                        "namespaceSelector": {"matchLabels": {f"k{k}": "v"}},
                    },
                )
            }
        ),
    )
    yield (
        "NetworkPolicy of ports",
        policies,
        20_000,
        lambda n: policy({"ports": each(n, lambda k: {"port": k % 65_535 + 1})}),
    )
    yield (
        "NetworkPolicy of names of ports",
        policies,
        20_000,
        lambda n: policy({"ports": each(n, lambda k: {"port": f"n{k}"})}),
    )
    yield (
        "NetworkPolicy of rules",
        policies,
        12_000,
        lambda n: {
            **named,
            "spec": {
                "podSelector": {},
                "ingress": each(
                    n,
                    lambda k: {"from": [{"podSelector": {}}], "ports": [{"port": k % 65_535 + 1}]},
                ),
            },
        },
    )
    yield (
        "NetworkPolicy of expressions",
        policies,
        15_000,
        lambda n: {**named, "spec": {"podSelector": {"matchExpressions": expressions(n)}}},
    )
    yield (
        "NetworkPolicy of values",
        policies,
        100_000,
        lambda n: {**named, "spec": {"podSelector": {"matchExpressions": one_of(n)}}},
    )
    backend = {"service": {"name": "x", "port": {"number": 1}}}
    yield (
        "Ingress of rules",
        "/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses",
        8_000,
        lambda n: {
            **named,
            "spec": {
                "rules": each(
                    n,
                    lambda k: {
                        "host": f"h{k}.com",
                        "http": {
                            "paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]
                        },
                    },
                )
            },
        },
    )
