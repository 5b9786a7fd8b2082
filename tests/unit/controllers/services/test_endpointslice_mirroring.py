from sampan.controllers.actions import Create, Delete, Update
from sampan.controllers.services.endpointslice_mirroring import mirrored_slices, plan


def endpoints(*ips, not_ready=(), labels=None, port=80):
    return {
        "metadata": {"name": "db", "namespace": "default", "uid": "e", "labels": labels or {}},
        "subsets": [
            {
                "addresses": [{"ip": one} for one in ips],
                "notReadyAddresses": [{"ip": one} for one in not_ready],
                "ports": [{"name": "sql", "port": port, "protocol": "TCP"}],
            }
        ],
    }


SERVICE = {"metadata": {"name": "db", "namespace": "default"}, "spec": {}}


def made(plan_):
    return [one.obj for one in plan_.actions if isinstance(one, Create)]


def test_each_family_has_a_slice():
    four, six = mirrored_slices(endpoints("10.0.0.1", "fd00::1", not_ready=["10.0.0.2"]))
    assert (four["addressType"], six["addressType"]) == ("IPv4", "IPv6")
    assert [one["conditions"]["ready"] for one in four["endpoints"]] == [True, False]
    assert four["metadata"]["labels"] == {
        "kubernetes.io/service-name": "db",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }


def test_a_change_of_addresses_is_an_update_and_of_ports_a_new_slice():
    [old] = made(plan(endpoints("10.0.0.1"), SERVICE, []))
    old["metadata"]["name"] = "db-1"
    assert not plan(endpoints("10.0.0.1"), SERVICE, [old]).actions
    [update] = plan(endpoints("10.0.0.9"), SERVICE, [old]).actions
    assert isinstance(update, Update)
    create, delete = plan(endpoints("10.0.0.1", port=81), SERVICE, [old]).actions
    assert isinstance(create, Create)
    assert isinstance(delete, Delete)


def test_what_is_not_to_be_mirrored_is_not():
    skipped = endpoints("10.0.0.1", labels={"endpointslice.kubernetes.io/skip-mirror": "true"})
    selecting = {**SERVICE, "spec": {"selector": {"app": "db"}}}
    [old] = made(plan(endpoints("10.0.0.1"), SERVICE, []))
    for found in (
        plan(skipped, SERVICE, [old]),
        plan(endpoints("10.0.0.1"), selecting, [old]),
        plan(endpoints("10.0.0.1"), None, [old]),
        plan(None, SERVICE, [old]),
    ):
        assert [type(one) for one in found.actions] == [Delete]


def test_annotations_are_mirrored_but_for_those_about_the_endpoints_themselves():
    given = endpoints("10.0.0.1")
    own = ("endpoints.kubernetes.io/last-change-trigger-time",
           "kubectl.kubernetes.io/last-applied-configuration")  # fmt: skip
    given["metadata"]["annotations"] = {"mine": "yes", **dict.fromkeys(own, "x")}
    [wanted] = mirrored_slices(given)
    assert wanted["metadata"]["annotations"] == {"mine": "yes"}
