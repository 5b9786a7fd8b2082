"""No sequence of allowed writes gives anybody a right that its writer did not hold.

The machine writes roles and bindings of every kind, by every verb, as users who may write them all
but hold little else. The oracle is naive: after each write that was let through it reads what is
stored, and works out by brute force who may do what; the code under test has no part in that.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from itertools import product

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sampan.core.clock import SystemClock
from tests.support.generators.api_requests import MERGE, api_server
from tests.support.worlds.control_plane import published_schema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
LABEL = f"{GROUP}/aggregate-to-gathering"
GATHER = {"clusterRoleSelectors": [{"matchLabels": {LABEL: "true"}}]}
WRITERS = ("alice", "bob", "carol")  # carol writes in namespace a only
USERS = (*WRITERS, "dave")
NAMESPACES = ("a", "b", "*")  # *: what has no namespace, or all of them
VERBS, RESOURCES, NAMES = ("get", "delete"), ("pods", "secrets"), ("", "x")
UNIVERSE = tuple(product(VERBS, RESOURCES, NAMES, NAMESPACES))
KINDS = ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
EXAMPLES = max(10, int(os.environ.get("SAMPAN_REQUESTS", "0")) // 200)

RULES = st.lists(
    st.builds(
        lambda verbs, resources, names: {
            "verbs": sorted(verbs), "apiGroups": [""], "resources": sorted(resources),
            **({"resourceNames": ["x"]} if names else {}),
        },
        st.sets(st.sampled_from((*VERBS, "*")), min_size=1, max_size=2),
        st.sets(st.sampled_from((*RESOURCES, "*")), min_size=1, max_size=2),
        st.booleans(),
    ),
    max_size=2,
)  # fmt: skip
ROLE_NAMES = st.sampled_from(("one", "two", "strong", "gathering", "view"))
WRITER = st.sampled_from(WRITERS)
HOW = st.sampled_from(("POST", "PUT", "PATCH", "APPLY"))
PLACE = st.sampled_from(("", "a", "b"))  # no namespace: of the cluster


def allows(rules, verb, resource, name):
    return any(
        {verb, "*"} & set(one.get("verbs") or ())
        and {"", "*"} & set(one.get("apiGroups") or ())
        and {resource, "*"} & set(one.get("resources") or ())
        and (not one.get("resourceNames") or name in one["resourceNames"])
        for one in rules
    )


def rights_of(stored):
    """user → what of the universe it may do, from what is stored and nothing else."""
    cluster_roles = {one["metadata"]["name"]: one for one in stored["clusterroles"]}

    def rules_of(role, seen=frozenset()):
        name = role["metadata"]["name"]
        found = list(role.get("rules") or ())
        for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            wanted = (selector.get("matchLabels") or {}).items()
            for other, each in cluster_roles.items():
                labels = (each["metadata"].get("labels") or {}).items()
                if other not in seen | {name} and wanted and wanted <= labels:
                    found += rules_of(each, seen | {name})
        return found

    rights = {user: set() for user in USERS}
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in stored[kind]:
            place = binding["metadata"].get("namespace", "")
            reference = binding["roleRef"]
            if reference["kind"] == "ClusterRole":
                role = cluster_roles.get(reference["name"])
            else:
                role = next(
                    (one for one in stored["roles"] if one["metadata"]["name"] == reference["name"]
                     and one["metadata"]["namespace"] == place), None)  # fmt: skip
            if role is None:
                continue
            given = {
                (verb, resource, name, where)
                for verb, resource, name, where in UNIVERSE
                if place in ("", where) and allows(rules_of(role), verb, resource, name)
            }
            for subject in binding.get("subjects") or ():
                if subject["kind"] == "User" and subject["name"] in rights:
                    rights[subject["name"]] |= given
    return rights


def test_the_oracle_knows_what_a_binding_gives():
    one = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}
    role = {"metadata": {"name": "r"}, "rules": [one]}
    binding = {
        "metadata": {"name": "b", "namespace": "a"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "dave"}],
    }
    stored = {"clusterroles": [role], "roles": [], "clusterrolebindings": []}
    assert rights_of({**stored, "rolebindings": [binding]})["dave"] == {("get", "pods", "x", "a")}
    gathering = {"metadata": {"name": "g"}, "aggregationRule": GATHER}
    role["metadata"]["labels"] = {LABEL: "true"}
    whole = {**binding, "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "g"}}
    stored = {"clusterroles": [role, gathering], "roles": [], "rolebindings": []}
    assert len(rights_of({**stored, "clusterrolebindings": [whole]})["dave"]) == 3


def path_of(kind, place):
    return f"{RBAC}/namespaces/{place}/{kind}" if place else f"{RBAC}/{kind}"


class Escalation(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.runner, self.stack = asyncio.Runner(), AsyncExitStack()
        self.api = self.runner.run(self.stack.enter_async_context(
            api_server(published_schema(), clock=SystemClock())))  # fmt: skip
        self.accepted = 0
        self.runner.run(self._begin())
        self.rights = self.runner.run(self._rights())

    async def _begin(self):
        made = self.api.made
        for name in ("a", "b"):
            await made("/api/v1/namespaces", {"metadata": {"name": name}})
        writes = {"verbs": ["get", "create", "update", "patch", "delete"], "apiGroups": [GROUP],
                  "resources": list(KINDS)}  # fmt: skip
        held = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
        every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        roles = f"{RBAC}/clusterroles"
        await made(roles, {"metadata": {"name": "writer"}, "rules": [writes, held]})
        await made(roles, {"metadata": {"name": "strong"}, "rules": [every]})
        await made(roles, {"metadata": {"name": "gathering"}, "aggregationRule": GATHER})
        for name, role in (("alice", "writer"), ("bob", "writer"), ("bob", "gathering")):
            await made(f"{RBAC}/clusterrolebindings", self._binding(f"{name}-{role}", role, name))
        local = path_of("rolebindings", "a")
        await made(local, self._binding("carol-writer", "writer", "carol"))

    def _binding(self, name, role, user, kind="ClusterRole"):
        return {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
        }

    async def _rights(self):
        stored = {kind: (await self.api.get(f"{RBAC}/{kind}")).obj["items"] for kind in KINDS}
        return rights_of(stored)

    def _write(self, writer, method, path, body, headers=None):
        async def write():
            got = await self.api.send(
                method, path, body, user=writer, group="people", headers=headers or {}
            )
            assert got.status < 500, got.body
            return got.status < 300

        if not self.runner.run(write()):
            return
        self.accepted += 1
        before, self.rights = self.rights, self.runner.run(self._rights())
        for user, now in self.rights.items():
            beyond = (now - before[user]) - before[writer]
            assert not beyond, f"{writer} gave {user} {sorted(beyond)} by {method} {path} {body}"

    @rule(writer=WRITER, name=ROLE_NAMES, place=PLACE, rules=RULES, labelled=st.booleans(),
          gathers=st.booleans(), how=HOW)  # fmt: skip
    def write_role(self, writer, name, place, rules, labelled, gathers, how):
        kind = "roles" if place else "clusterroles"
        labels = {"labels": {LABEL: "true"}} if labelled else {}
        body = {"metadata": {"name": name, **labels}, "rules": rules}
        if gathers and not place:
            body["aggregationRule"] = GATHER
        self._send(writer, how, path_of(kind, place), "Role" if place else "ClusterRole", body)

    @rule(writer=WRITER, name=ROLE_NAMES, place=PLACE)
    def label_role(self, writer, name, place):
        path = f"{path_of('roles' if place else 'clusterroles', place)}/{name}"
        patch = {"metadata": {"labels": {LABEL: "true"}}}
        self._write(writer, "PATCH", path, patch, {"content-type": MERGE})

    @rule(writer=WRITER, role=ROLE_NAMES, place=PLACE, user=st.sampled_from(USERS),
          kind=st.sampled_from(("Role", "ClusterRole")), how=HOW)  # fmt: skip
    def write_binding(self, writer, role, place, user, kind, how):
        plural = "rolebindings" if place else "clusterrolebindings"
        body = self._binding("bound", role, user, kind)
        self._send(writer, how, path_of(plural, place),
                   "RoleBinding" if place else "ClusterRoleBinding", body)  # fmt: skip

    @rule(writer=WRITER, place=PLACE, kind=st.sampled_from(KINDS), name=ROLE_NAMES)
    def delete(self, writer, place, kind, name):
        if kind.startswith("cluster") == bool(place):
            return
        named = "bound" if kind.endswith("bindings") else name
        self._write(writer, "DELETE", f"{path_of(kind, place)}/{named}", None)

    def _send(self, writer, how, path, kind, body):
        named = f"{path}/{body['metadata']['name']}"
        if how == "POST":
            self._write(writer, "POST", path, body)
        elif how == "PUT":
            self._write(writer, "PUT", named, body)
        elif how == "PATCH":
            self._write(writer, "PATCH", named, body, {"content-type": MERGE})
        else:
            whole = {"apiVersion": f"{GROUP}/v1", "kind": kind, **body}
            media = {"content-type": "application/apply-patch+yaml"}
            self._write(writer, "PATCH", f"{named}?fieldManager={writer}&force=true", whole, media)

    @invariant()
    def nobody_holds_what_nobody_was_given(self):
        """In the beginning there was `get pods`, and nobody with `escalate` or `bind` came by."""
        for user, rights in self.rights.items():
            assert {right[:2] for right in rights} <= {("get", "pods")}, user

    def teardown(self):
        self.runner.run(self.stack.aclose())
        self.runner.close()


Escalation.TestCase.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=30, deadline=None
)
test_nobody_gives_what_they_do_not_hold = Escalation.TestCase
