from sampan.api.objects import time_text
from sampan.apiserver.registry.services.service_claims import ip_address
from sampan.apiserver.registry.services.service_repair import address_repairs

NOW = 1_700_000_000.0


def service(name, ip):
    spec = {"clusterIP": ip, "clusterIPs": [ip]}
    return {"metadata": {"name": name, "namespace": "d"}, "spec": spec}


def address(name, ip, age_seconds):
    made = ip_address(service(name, ip), ip)
    made["metadata"]["creationTimestamp"] = time_text(NOW - age_seconds)
    return made


def test_nothing_is_done_where_services_and_addresses_agree():
    services = [service("a", "10.0.0.2"), service("headless", "None")]
    found = address_repairs(services, [address("a", "10.0.0.2", 1000)], NOW)
    assert (found.missing, found.orphans) == ([], [])


def test_an_address_without_its_object_gets_one():
    one = service("a", "10.0.0.2")
    assert address_repairs([one], [], NOW).missing == [(one, "10.0.0.2")]


def test_an_address_of_no_service_goes_after_a_minute():
    services = [service("a", "10.0.0.2")]
    addresses = [address("gone", "10.0.0.3", 61), address("coming", "10.0.0.4", 59),
                 address("a", "10.0.0.5", 100), address("a", "10.0.0.2", 100)]  # fmt: skip
    orphans = address_repairs(services, addresses, NOW).orphans
    assert sorted(ip for _, ip in orphans) == ["10.0.0.3", "10.0.0.5"]


def test_an_address_that_somebody_else_manages_is_left_alone():
    other = address("gone", "10.0.0.3", 1000)
    del other["metadata"]["labels"]
    assert address_repairs([], [other], NOW).orphans == []
