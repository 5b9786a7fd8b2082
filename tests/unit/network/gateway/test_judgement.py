"""Gateways and routes as their statuses tell of them, and the table that comes of it."""

import pytest

from sampan.core.http.messages import Request
from sampan.network.gateway.judgement import judged
from tests.support.parts import gateways as made

NOW = 1_700_000_000.0


def parents(route, **more):
    gateways = more.pop("gateways", [made.gateway()])
    found = judged(made.world(gateways, [route], **more), NOW)
    return found.routes[0][1]["parents"]


def reasons(route, **more):
    (parent,) = parents(route, **more)
    return {each["type"]: (each["status"], each["reason"]) for each in parent["conditions"]}


def backend_for(found, path, host="a.com", method="GET", protocol="HTTP", query="", **headers):
    match = found.table.find(protocol, host, path, Request(method, path, query, headers))
    return match and match.rule.backends[0].reference.name


def table(*routes, gateways=None):
    return judged(made.world(gateways or [made.gateway()], routes), NOW)


def to(name, path="/", kind="PathPrefix", **match):
    return {
        "matches": [{"path": {"type": kind, "value": path}, **match}],
        "backendRefs": [made.backend(name)],
    }


def test_a_route_is_accepted_and_its_gateway_counts_it():
    found = judged(made.world([made.gateway()], [made.http_route()]), NOW)
    assert [(each["type"], each["status"]) for each in found.classes[0][1]["conditions"]] == [
        ("Accepted", "True")
    ]
    status = found.gateways[0][1]
    assert status["addresses"] == [{"type": "Hostname", "value": "localhost"}]
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Accepted": "True",
        "Programmed": "True",
    }
    (told,) = status["listeners"]
    assert told["attachedRoutes"] == 1
    assert told["supportedKinds"] == [{"group": made.GROUP, "kind": "HTTPRoute"}]
    (parent,) = found.routes[0][1]["parents"]
    assert parent["parentRef"] == {"name": "gw", "namespace": "infra"}
    assert parent["controllerName"] == "sampan.dev/gateway"
    assert all(each["observedGeneration"] == 1 for each in parent["conditions"])
    assert all(
        each["lastTransitionTime"] == "2023-11-14T22:13:20Z" for each in parent["conditions"]
    )


def test_a_condition_that_stays_keeps_its_time_and_others_entries_stay():
    route = made.http_route()
    (told,) = parents(route)
    theirs = {"parentRef": {"name": "x"}, "controllerName": "other", "conditions": []}
    gone = {**told, "parentRef": {"name": "gone"}}
    route["status"] = {"parents": [theirs, gone, told]}
    later = judged(made.world([made.gateway()], [route]), NOW + 60).routes[0][1]
    assert later["parents"] == [theirs, told]


def test_gateways_of_other_classes_are_nobodys_here():
    other = made.gateway_class("other", "example.com/controller")
    found = judged(
        made.world([made.gateway(gateway_class="other")], [made.http_route()], classes=[other]), NOW
    )
    assert not found.classes
    assert not found.gateways
    assert found.routes[0][1] == {"parents": []}
    assert backend_for(found, "/") is None


@pytest.mark.parametrize(
    ("parent", "more", "reason"),
    [
        ({"name": "gw", "namespace": "infra", "sectionName": "no"}, {}, "NoMatchingParent"),
        ({"name": "gw", "namespace": "infra", "port": 81}, {}, "NoMatchingParent"),
        (None, {"namespace": "web"}, "NotAllowedByListeners"),
        (None, {"hostnames": ["b.com"]}, "NoMatchingListenerHostname"),
    ],
)
def test_a_route_that_no_listener_takes(parent, more, reason):
    gateway = made.gateway(made.listener(hostname="*.a.com"))
    route = made.http_route(parent=parent, **more)
    assert reasons(route, gateways=[gateway])["Accepted"] == ("False", reason)
    found = judged(made.world([gateway], [route]), NOW)
    assert found.gateways[0][1]["listeners"][0]["attachedRoutes"] == 0


def test_namespaces_that_a_listener_selects():
    allowed = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}}
    gateway = made.gateway(made.listener(allowedRoutes=allowed))
    homes = [{"metadata": {"name": "web", "labels": {"team": "a"}}}, {"metadata": {"name": "b"}}]
    for namespace, status in (("web", "True"), ("b", "False"), ("unknown", "False")):
        route = made.http_route(namespace=namespace)
        told = reasons(route, gateways=[gateway], namespaces=homes)
        assert told["Accepted"][0] == status
    everyone = made.gateway(made.listener(allowedRoutes={"namespaces": {"from": "All"}}))
    route = made.http_route(namespace="b")
    assert reasons(route, gateways=[everyone])["Accepted"] == ("True", "Accepted")


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (made.backend("none"), "BackendNotFound"),
        (made.backend(port=81), "BackendNotFound"),
        (made.backend(kind="Bucket", group="x.io"), "InvalidKind"),
        (made.backend(namespace="other"), "RefNotPermitted"),
        (made.backend("away"), "UnsupportedProtocol"),
    ],
)
def test_a_backend_that_leads_nowhere(backend, reason):
    services = [made.service(), made.service("away", type="ExternalName")]
    told = reasons(made.http_route(made.rule("/", backend)), services=services)
    assert told == {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("False", reason)}


def test_rules_that_are_not_served_are_told():
    mirror = made.rule("/m", filters=[{"type": "RequestMirror"}])
    assert reasons(made.http_route(mirror))["Accepted"] == ("False", "UnsupportedValue")
    told = reasons(made.http_route(mirror, made.rule("/")))
    assert told["Accepted"] == ("True", "Accepted")
    assert told["PartiallyInvalid"] == ("True", "UnsupportedValue")


@pytest.mark.parametrize(
    ("gateway", "accepted", "programmed"),
    [
        (made.gateway(made.listener(protocol="TCP")), ("False", "ListenersNotValid"), "Invalid"),
        (
            made.gateway(made.listener(), made.listener("b", 81)),
            ("True", "ListenersNotValid"),
            "Programmed",
        ),
        (
            made.gateway(infrastructure={"parametersRef": {"name": "x"}}),
            ("False", "InvalidParameters"),
            "Invalid",
        ),
        (
            made.gateway(addresses=[{"type": "NamedAddress", "value": "x"}]),
            ("False", "UnsupportedAddress"),
            "Invalid",
        ),
        (
            made.gateway(addresses=[{"type": "IPAddress", "value": "192.0.2.1"}]),
            ("True", "Accepted"),
            "AddressNotUsable",
        ),
        (
            made.gateway(addresses=[{"type": "Hostname", "value": "localhost"}]),
            ("True", "Accepted"),
            "Programmed",
        ),
    ],
)
def test_a_gateway_says_what_is_wrong_with_it(gateway, accepted, programmed):
    (told,) = [status for _, status in judged(made.world([gateway]), NOW).gateways]
    found = {each["type"]: each for each in told["conditions"]}
    assert (found["Accepted"]["status"], found["Accepted"]["reason"]) == accepted
    assert found["Programmed"]["reason"] == programmed


# Where requests go.


def test_paths_are_matched_by_elements_exact_ones_first():
    found = table(
        made.http_route(
            to("v1", "/match"),
            to("v2", "/match/exact", "Exact"),
            to("v3", "/match/exact/"),
            to("v4", "/re/[0-9]+", "RegularExpression"),
            to("v5", "/re"),
        )
    )
    assert backend_for(found, "/match/exact") == "v2"
    assert backend_for(found, "/match/exact/") == "v3"
    assert backend_for(found, "/match/exact/one") == "v3"
    assert backend_for(found, "/match/any") == "v1"
    assert backend_for(found, "/matched") is None
    assert backend_for(found, "/re/12") == "v4"
    assert backend_for(found, "/re/x") == "v5"


def test_a_method_counts_more_than_headers_and_those_more_than_parameters():
    header, parameter = [{"name": "h", "value": "1"}], [{"name": "q", "value": "1"}]
    found = table(
        made.http_route(
            to("none"),
            to("parameter", queryParams=parameter),
            to("header", headers=header),
            to("method", method="POST"),
        )
    )
    assert backend_for(found, "/", method="POST", query="q=1", h="1") == "method"
    assert backend_for(found, "/", query="q=1", h="1") == "header"
    assert backend_for(found, "/", query="q=1") == "parameter"
    assert backend_for(found, "/") == "none"


def test_of_two_routes_that_are_alike_the_older_has_it_then_the_first_by_name():
    old = made.http_route(to("old"), name="z", created="2023")
    young = made.http_route(to("young"), name="a", created="2024")
    assert backend_for(table(young, old), "/") == "old"
    twin = made.http_route(to("twin"), name="b", created="2024")
    assert backend_for(table(twin, young), "/") == "young"


def test_the_narrowest_hostname_comes_first_and_others_after_it():
    found = table(
        made.http_route(to("exact", "/x"), name="1", hostnames=["a.b.com"]),
        made.http_route(to("wide", "/x"), to("rest", "/"), name="2", hostnames=["*.com"]),
        made.http_route(to("wild", "/x"), name="3", hostnames=["*.b.com"]),
    )
    assert backend_for(found, "/x", "a.b.com") == "exact"
    assert backend_for(found, "/x", "c.b.com") == "wild"
    assert backend_for(found, "/y", "a.b.com") == "rest"
    assert backend_for(found, "/x", "com") is None


def test_the_listener_with_the_narrowest_hostname_has_the_request_alone():
    gateway = made.gateway(made.listener("all"), made.listener("some", hostname="*.b.com"))
    everywhere = {"name": "gw", "namespace": "infra", "sectionName": "all"}
    there = {"name": "gw", "namespace": "infra", "sectionName": "some"}
    found = table(
        made.http_route(to("all", "/"), name="1", parent=everywhere),
        made.http_route(to("some", "/s"), name="2", parent=there),
        gateways=[gateway],
    )
    assert backend_for(found, "/s", "a.b.com") == "some"
    assert backend_for(found, "/t", "a.b.com") is None
    assert backend_for(found, "/t", "a.com") == "all"


def test_what_is_not_a_host_of_the_listener_is_not_considered():
    gateway = made.gateway(made.listener(hostname="*.a.com"))
    route = made.http_route(to("web"), hostnames=["x.a.com", "x.b.com"])
    found = table(route, gateways=[gateway])
    assert backend_for(found, "/", "x.a.com") == "web"
    assert backend_for(found, "/", "x.b.com") is None
    assert backend_for(found, "/", "x.a.com", protocol="HTTPS") is None
