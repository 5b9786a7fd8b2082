"""Kubernetes' DNS specification, as a table [W2]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.network.dns import wire
from sampan.network.dns.zone import ClusterZone, records_of_service, records_of_slice


def service(name, namespace="default", **spec):
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def piece(*entries, ports=(("http", 8080, "TCP"),)):
    return {
        "addressType": "IPv4",
        "endpoints": list(entries),
        "ports": [{"name": n, "port": p, "protocol": q} for n, p, q in ports],
    }


def entry(address, ready=True, **fields):
    return {"addresses": [address], "conditions": {"ready": ready}, **fields}


@pytest.fixture
def zone():
    zone = ClusterZone("cluster.local", ["10.96.0.10"])
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]
    zone.put(
        "default/web",
        service("web", clusterIP="10.96.0.5", clusterIPs=["10.96.0.5", "fd00::5"], ports=ports),
        [],
    )
    zone.put(
        "db/pg",
        service("pg", "db", clusterIP="None", ports=[{"name": "http", "port": 80}]),
        [piece(entry("10.244.0.2", hostname="pg-0"), entry("10.244.0.3"),
               entry("10.244.0.4", ready=False))],
    )  # fmt: skip
    zone.put("default/out", service("out", type="ExternalName", externalName="Example.ORG."), [])
    return zone


CASES = [
    ("web.default.svc.cluster.local", "A", "NOERROR", ["10.96.0.5"]),
    ("web.default.svc.cluster.local", "AAAA", "NOERROR", ["fd00::5"]),
    ("web.default.svc.cluster.local", "TXT", "NOERROR", []),
    (
        "_http._tcp.web.default.svc.cluster.local",
        "SRV",
        "NOERROR",
        [(0, 100, 80, "web.default.svc.cluster.local")],
    ),
    ("_http._udp.web.default.svc.cluster.local", "SRV", "NXDOMAIN", []),
    ("_tcp.web.default.svc.cluster.local", "SRV", "NOERROR", []),
    ("5.0.96.10.in-addr.arpa", "PTR", "NOERROR", ["web.default.svc.cluster.local"]),
    ("pg.db.svc.cluster.local", "A", "NOERROR", ["10.244.0.2", "10.244.0.3"]),
    ("pg-0.pg.db.svc.cluster.local", "A", "NOERROR", ["10.244.0.2"]),
    ("10-244-0-3.pg.db.svc.cluster.local", "A", "NOERROR", ["10.244.0.3"]),
    ("10-244-0-4.pg.db.svc.cluster.local", "A", "NXDOMAIN", []),
    (
        "_http._tcp.pg.db.svc.cluster.local",
        "SRV",
        "NOERROR",
        [
            (0, 100, 8080, "pg-0.pg.db.svc.cluster.local"),
            (0, 100, 8080, "10-244-0-3.pg.db.svc.cluster.local"),
        ],
    ),
    ("2.0.244.10.in-addr.arpa", "PTR", "NOERROR", ["pg-0.pg.db.svc.cluster.local"]),
    ("out.default.svc.cluster.local", "A", "NOERROR", ["example.org"]),
    ("out.default.svc.cluster.local", "CNAME", "NOERROR", ["example.org"]),
    ("10-244-0-9.default.pod.cluster.local", "A", "NOERROR", ["10.244.0.9"]),
    ("10-244-0-9.default.pod.cluster.local", "AAAA", "NOERROR", []),
    ("fd00--9.default.pod.cluster.local", "AAAA", "NOERROR", ["fd00::9"]),
    ("10-244-0-999.default.pod.cluster.local", "A", "NXDOMAIN", []),
    ("web.default.pod.cluster.local", "A", "NXDOMAIN", []),
    ("nobody.default.svc.cluster.local", "A", "NXDOMAIN", []),
    ("web.other.svc.cluster.local", "A", "NXDOMAIN", []),
    ("default.svc.cluster.local", "A", "NOERROR", []),
    ("svc.cluster.local", "A", "NOERROR", []),
    ("pod.cluster.local", "A", "NOERROR", []),
    ("cluster.local", "A", "NOERROR", []),
    ("cluster.local", "NS", "NOERROR", ["ns.dns.cluster.local"]),
    ("ns.dns.cluster.local", "A", "NOERROR", ["10.96.0.10"]),
    ("dns-version.cluster.local", "TXT", "NOERROR", ["1.1.0"]),
    ("www.example.org.cluster.local", "A", "NXDOMAIN", []),
]


@pytest.mark.parametrize(("name", "kind", "rcode", "data"), CASES)
def test_the_specification(zone, name, kind, rcode, data):
    number = next(each for each, text in wire.TYPES.items() if text == kind)
    answer = zone.pointer(name) if name.endswith(".arpa") else zone.answer(name, number)
    assert wire.RCODES[answer.rcode] == rcode
    assert [record.data for record in answer.answers] == data
    if not data:
        [soa] = answer.authority
        assert (soa.name, soa.type) == ("cluster.local", wire.SOA)
        assert soa.ttl == soa.data[-1], "for how long it is not there"


def test_a_srv_answer_brings_the_addresses_along(zone):
    answer = zone.answer("_http._tcp.pg.db.svc.cluster.local", wire.SRV)
    assert [record.data for record in answer.additional] == ["10.244.0.2", "10.244.0.3"]


def test_an_address_outside_the_cluster_is_not_ours(zone):
    assert zone.pointer("1.2.0.192.in-addr.arpa") is None


SPECS = st.sampled_from(
    [
        None,
        {"clusterIP": "10.96.0.5", "ports": [{"name": "a", "port": 1}]},
        {"clusterIP": "10.96.0.6", "ports": []},
        {"clusterIP": "None"},
        {"type": "ExternalName", "externalName": "x.org"},
    ]
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["n", "m"]), SPECS), max_size=10
)


@given(STEPS)
def test_the_zone_is_what_the_services_say_whatever_came_before(steps):
    zone, latest = ClusterZone("c.l", ["10.96.0.10"]), {}
    for name, namespace, spec in steps:
        obj = service(name, namespace, **spec) if spec is not None else None
        zone.put(f"{namespace}/{name}", obj, [piece(entry("10.244.0.2"))])
        latest[f"{namespace}/{name}"] = obj
    fresh = ClusterZone("c.l", ["10.96.0.10"])
    for key, obj in latest.items():
        fresh.put(key, obj, [piece(entry("10.244.0.2"))])
    names = {
        record.name
        for obj in latest.values()
        if obj
        for record in (
            *records_of_service(obj, "c.l"),
            *records_of_slice(obj, piece(entry("10.244.0.2")), "c.l"),
        )
    }
    for name in {*names, "n.svc.c.l", "a.n.svc.c.l", "b.m.svc.c.l", "x.n.svc.c.l"}:
        for kind in (wire.A, wire.SRV, wire.PTR, wire.CNAME):
            mine, other = zone.answer(name, kind), fresh.answer(name, kind)
            assert (mine.rcode, set(mine.answers)) == (other.rcode, set(other.answers))
