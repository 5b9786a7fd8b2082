from hypothesis import given
from hypothesis import strategies as st

from sampan.api.calls import Item
from sampan.apiserver.registry.services.allocated import AllAllocated, allocated_to

PORTS = st.lists(st.integers(30000, 30003), max_size=2)
SPECS = st.one_of(
    st.none(),
    st.builds(
        lambda ip, ports: {
            "clusterIP": ip, "clusterIPs": [ip], "ports": [{"nodePort": port} for port in ports]
        },
        st.sampled_from(["10.0.0.1", "10.0.0.2", "None"]), PORTS,
    ),
)  # fmt: skip
CHANGES = st.lists(st.tuples(st.sampled_from("abc"), SPECS))


def service(name, spec):
    return {"metadata": {"name": name, "namespace": "d"}, "spec": spec}


def test_a_headless_service_has_no_address():
    assert allocated_to(service("a", {"clusterIP": "None", "clusterIPs": ["None"]})).ips == set()


@given(CHANGES, CHANGES)
def test_following_changes_counts_what_counting_anew_counts(before, after):
    items: dict[str, Item] = {}
    asked = []

    def services():
        asked.append(1)
        return [item.obj for item in items.values()]

    allocated = AllAllocated(services)

    def change(name, spec):
        old = items.pop(name, None)
        if spec is not None:
            items[name] = Item(f"d/{name}", 1, service(name, spec), b"")
        allocated.change(old, items.get(name))

    for name, spec in before:
        change(name, spec)
    allocated.ports()
    for name, spec in after:
        change(name, spec)
    all_of = [allocated_to(item.obj) for item in items.values()]
    assert allocated.ports() == {port for has in all_of for port in has.ports}
    for ip in ("10.0.0.1", "10.0.0.2"):
        assert allocated.has_ip(ip) == any(ip in has.ips for has in all_of)
    assert asked == [1], "all services were looked at more than once"
    allocated.forget()
    allocated.has_ip("10.0.0.1")
    assert asked == [1, 1]
