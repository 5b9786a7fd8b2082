"""The small controllers under the same faults: mirrors, gathered roles, token secrets, lost pods,
ranges of services, claims of ephemeral volumes."""

import base64
import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.api.errors import ApiError, NotFound
from sampan.api.resources import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_CIDRS,
    SERVICES,
)
from sampan.controllers.access.clusterrole_aggregation import CLUSTER_ROLES
from sampan.controllers.catalog import ControllerSettings
from tests.support.worlds.controller_worlds import (
    TOO_LATE,
    BaseWorld,
    absent,
    named_object,
    play,
    pod_of,
    steps,
)

EXAMPLES = settings(max_examples=15, deadline=None)
NUMBER = st.integers(0, 2)
PAIR = st.tuples(NUMBER, NUMBER)


def verbs(*names, value=NUMBER):
    return [st.tuples(st.just(name), value) for name in names]


class Mirrors(BaseWorld):
    """Endpoints that a user writes, for a service that selects nothing."""

    def __init__(self, plane):
        super().__init__(plane)
        self.wanted = set()

    async def begin(self):
        spec = {"ports": [{"port": 80}]}
        await self.client.create(SERVICES, named_object("v1", "Service", "db", spec=spec))

    async def do(self, verb, value):
        match verb:
            case "write":
                self.wanted = {f"192.0.2.{number}" for number in range(1, value + 2)}
                listed = [{"ip": one} for one in sorted(self.wanted)]
                subsets = [{"addresses": listed, "ports": [{"port": 80}]}]
                made = named_object("v1", "Endpoints", "db", subsets=subsets)
                try:
                    await self.client.create(ENDPOINTS, made)
                except TOO_LATE:
                    await self.merge(ENDPOINTS, "db", {"subsets": subsets})
            case "remove":
                self.wanted = set()
                await absent(self.client.delete(ENDPOINTS, "default", "db"), NotFound)
            case "spoil":
                for one in await self.mirrors():
                    gone = self.client.delete(ENDPOINT_SLICES, "default", one["metadata"]["name"])
                    await absent(gone, NotFound)

    async def mirrors(self):
        listed = await self.items(ENDPOINT_SLICES)
        return [one for one in listed if one["metadata"]["name"] != "kubernetes"]

    async def check(self):
        found = [
            address
            for page in await self.mirrors()
            for one in page.get("endpoints") or ()
            for address in one["addresses"]
        ]
        assert sorted(found) == sorted(self.wanted)


@pytest.mark.slow
@given(steps(*verbs("write", "remove", "spoil")))
@EXAMPLES
def test_slices_mirror_what_was_written_by_hand(told):
    play(["endpointslicemirroring"], Mirrors, told)


class Gathered(BaseWorld):
    """A role made of others by their label."""

    def __init__(self, plane):
        super().__init__(plane)
        self.parts = {}

    async def begin(self):
        rule = {"clusterRoleSelectors": [{"matchLabels": {"of": "all"}}]}
        made = named_object(
            CLUSTER_ROLES.api_version, "ClusterRole", "all", "", aggregationRule=rule
        )
        await self.client.create(CLUSTER_ROLES, {**made, "rules": []})

    async def do(self, verb, value):
        name = f"part-{value[0]}"
        match verb:
            case "role":
                rules = [{"apiGroups": [""], "resources": [f"r{value[1]}"], "verbs": ["get"]}]
                meta = {"labels": {"of": "all"}}
                made = named_object(
                    CLUSTER_ROLES.api_version, "ClusterRole", name, "", meta=meta, rules=rules
                )
                self.parts[name] = f"r{value[1]}"
                try:
                    await self.client.create(CLUSTER_ROLES, made)
                except TOO_LATE:
                    patch = {"rules": rules, "metadata": meta}
                    await self.merge(CLUSTER_ROLES, name, patch, "")
            case "leave":
                self.parts.pop(name, None)
                patch = {"metadata": {"labels": {"of": None}}}
                await absent(self.merge(CLUSTER_ROLES, name, patch, ""), NotFound)
            case "spoil":
                await self.merge(CLUSTER_ROLES, "all", {"rules": []}, "")

    async def check(self):
        found = await self.client.get(CLUSTER_ROLES, "", "all")
        resources = [one for rule in found.get("rules") or () for one in rule["resources"]]
        assert sorted(resources) == sorted(set(self.parts.values()))


@pytest.mark.slow
@given(steps(*verbs("role", "leave", "spoil", value=PAIR)))
@EXAMPLES
def test_a_role_gathers_the_rules_of_others(told):
    play(["clusterrole-aggregation"], Gathered, told)


class Tokens(BaseWorld):
    """Accounts that come and go, and secrets that name them."""

    async def do(self, verb, value):
        match verb:
            case "account":
                made = named_object("v1", "ServiceAccount", f"a{value}")
                await absent(self.client.create(SERVICE_ACCOUNTS, made), *TOO_LATE)
            case "no account":
                gone = self.client.delete(SERVICE_ACCOUNTS, "default", f"a{value}")
                await absent(gone, NotFound)
            case "secret":
                meta = {"annotations": {"kubernetes.io/service-account.name": f"a{value}"}}
                kind = "kubernetes.io/service-account-token"
                made = named_object("v1", "Secret", f"s{value}", meta=meta, type=kind)
                await absent(self.client.create(SECRETS, made), *TOO_LATE)
            case "spoil":
                await absent(self.merge(SECRETS, f"s{value}", {"data": None}), NotFound)

    async def check(self):
        accounts = {
            one["metadata"]["name"]: one["metadata"]["uid"]
            for one in await self.items(SERVICE_ACCOUNTS)
        }
        for one in await self.items(SECRETS):
            notes = one["metadata"]["annotations"]
            account = notes["kubernetes.io/service-account.name"]
            assert accounts[account] == notes["kubernetes.io/service-account.uid"]
            assert base64.b64decode(one["data"]["token"]).decode() == f"token of {account}"
            assert base64.b64decode(one["data"]["ca.crt"]).decode() == "PEM"


@pytest.mark.slow
@given(steps(*verbs("account", "no account", "secret", "spoil"), most=14))
@EXAMPLES
def test_a_token_secret_is_as_alive_as_its_account(told):
    chosen = ControllerSettings(
        root_ca="PEM",
        sign_account_token=lambda _namespace, account, _uid, _secret: f"token of {account}",
    )
    play(["serviceaccount-token"], Tokens, told, settings=chosen)


class Lost(BaseWorld):
    """Pods whose nodes are taken away under them."""

    async def do(self, verb, value):
        match verb:
            case "node":
                made = named_object("v1", "Node", f"n{value}", "")
                await absent(self.client.create(NODES, made), *TOO_LATE)
            case "no node":
                await absent(self.client.delete(NODES, "", f"n{value}"), NotFound)
            case "pod":
                made = pod_of(f"p{value}", nodeName=f"n{value}")
                await absent(self.client.create(PODS, made), *TOO_LATE)

    async def check(self):
        await self.plane.settled(seconds=100)  # longer than the quarantine
        nodes = {one["metadata"]["name"] for one in await self.items(NODES, "")}
        for one in await self.items(PODS):
            assert one["spec"]["nodeName"] in nodes, "its node is gone for good"


@pytest.mark.slow
@given(steps(*verbs("node", "no node", "pod"), most=14))
@EXAMPLES
def test_pods_of_lost_nodes_go_and_no_others(told):
    play(["podgc"], Lost, told)


class Ranges(BaseWorld):
    """Ranges of addresses, and services that have some of them."""

    async def do(self, verb, value):
        match verb:
            case "range":
                spec = {"cidrs": [f"10.{value + 1}.0.0/24"]}
                made = named_object(
                    SERVICE_CIDRS.api_version, "ServiceCIDR", f"range-{value}", "", spec=spec
                )
                await absent(self.client.create(SERVICE_CIDRS, made), *TOO_LATE)
            case "no range":
                gone = self.client.delete(SERVICE_CIDRS, "", f"range-{value}")
                await absent(gone, NotFound)
            case "service":
                spec = {"ports": [{"port": 80}], "clusterIP": f"10.{value + 1}.0.5"}
                made = named_object("v1", "Service", f"web-{value}", spec=spec)
                await absent(self.client.create(SERVICES, made), ApiError)
            case "no service":
                gone = self.client.delete(SERVICES, "default", f"web-{value}")
                await absent(gone, NotFound)

    async def check(self):
        addresses = [one["spec"]["clusterIP"] for one in await self.items(SERVICES)]
        for one in await self.items(SERVICE_CIDRS, ""):
            [ready] = [c for c in one["status"]["conditions"] if c["type"] == "Ready"]
            going = "deletionTimestamp" in one["metadata"]
            assert (ready["status"] == "False") == going, one
            if going:
                network = ipaddress.ip_network(one["spec"]["cidrs"][0])
                assert any(ipaddress.ip_address(ip) in network for ip in addresses), "for whom?"


@pytest.mark.slow
@given(steps(*verbs("range", "no range", "service", "no service"), most=14))
@EXAMPLES
def test_a_range_stays_as_long_as_a_service_needs_it(told):
    play(["service-cidr-controller"], Ranges, told)


class Ephemeral(BaseWorld):
    """Pods that bring the template of a claim along."""

    async def do(self, verb, value):
        name = f"p{value}"
        match verb:
            case "pod":
                asked = {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                }
                volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": asked}}}
                await absent(self.client.create(PODS, pod_of(name, volumes=[volume])), *TOO_LATE)
            case "no pod":
                gone = self.client.delete(PODS, "default", name, grace_seconds=0)
                await absent(gone, NotFound)

    async def check(self):
        pods = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await self.items(PODS)}
        found = {}
        for one in await self.items(PERSISTENT_VOLUME_CLAIMS):
            [owner] = one["metadata"]["ownerReferences"]
            found[owner["name"]] = owner["uid"]
            assert one["metadata"]["name"] == f"{owner['name']}-v"
        assert found == pods


@pytest.mark.slow
@given(steps(*verbs("pod", "no pod")))
@EXAMPLES
def test_an_ephemeral_volume_lives_as_long_as_its_pod(told):
    names = ["ephemeral-volume", "pvc-protection", "garbagecollector"]
    play(names, Ephemeral, told)
