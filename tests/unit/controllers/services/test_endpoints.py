"""The subsets of Endpoints: the ports that the same addresses offer belong together."""

from sampan.controllers.services.endpoints import subsets_of


def service(*ports, **spec):
    listed = [{"name": name, "port": 80, "targetPort": target} for name, target in ports]
    found = {"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5"], "ipFamilies": ["IPv4"]}
    meta = {"name": "s", "namespace": "ns"}
    return {"metadata": meta, "spec": {**found, "ports": listed, "selector": {"a": "b"}, **spec}}


def pod(number, ports=None, *, ready=True, deleted=False):
    named = [{"name": name, "containerPort": port} for name, port in (ports or {}).items()]
    address = f"10.0.0.{number}"
    meta = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"}
    if deleted:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    condition = {"type": "Ready", "status": str(ready)}
    return {
        "metadata": meta,
        "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": named}]},
        "status": {
            "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": [condition],
        },
    }  # fmt: skip


def shape(subsets):
    """Ports → the last numbers of the addresses that offer them."""
    found = []
    for subset in subsets:
        ports = tuple((port.get("name"), port["port"]) for port in subset.get("ports") or ())
        addresses = [one["ip"].split(".")[-1] for one in subset.get("addresses") or ()]
        waiting = [one["ip"].split(".")[-1] for one in subset.get("notReadyAddresses") or ()]
        found.append((ports, addresses, waiting))
    return found


def test_ports_that_all_have_are_one_subset():
    subsets, truncated = subsets_of(service(("a", 1), ("b", 2)), [pod(1), pod(2, ready=False)])
    assert shape(subsets) == [((("a", 1), ("b", 2)), ["1"], ["2"])]
    assert not truncated


def test_named_ports_that_differ_part_the_addresses_not_the_pods():
    pods = [pod(1, {"web": 8080}), pod(2, {"web": 9090})]
    subsets, _ = subsets_of(service(("a", 1), ("w", "web")), pods)
    assert shape(subsets) == [
        ((("a", 1),), ["1", "2"], []),
        ((("w", 8080),), ["1"], []),
        ((("w", 9090),), ["2"], []),
    ]


def test_a_headless_service_without_ports_has_addresses_alone():
    subsets, _ = subsets_of(service(clusterIP="None", clusterIPs=["None"]), [pod(1)])
    assert shape(subsets) == [((), ["1"], [])]


def test_who_leaves_is_listed_only_where_all_are_published():
    leaving = pod(1, ready=False, deleted=True)
    assert subsets_of(service(("a", 1)), [leaving]) == ([], False)
    subsets, _ = subsets_of(service(("a", 1), publishNotReadyAddresses=True), [leaving])
    assert shape(subsets) == [((("a", 1),), ["1"], [])]
