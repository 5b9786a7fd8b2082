"""Everything that a node may ask for, and so everything that it may not.

Each verb on each resource and subresource that there is, as a node with no pods: what is allowed is
this table, line by line. A new resource is refused until somebody writes it down here.
"""

import asyncio

from sampan.api.resources import RESOURCES
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes
from sampan.core.clock import SystemClock
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

NODE = User("system:node:n1", ("system:nodes", "system:authenticated"))
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
         "impersonate", "bind", "escalate", "approve", "sign", "attest")  # fmt: skip


async def allowed_of(api, name: str) -> set[str]:
    may = api.server._chain.scope.authorization
    found = set()
    for resource in RESOURCES:
        parts = ("", *(each.name for each in resource.subresources))
        for part in parts:
            for verb in VERBS:
                namespace = "other" if resource.namespaced else ""
                asked = Attributes(
                    NODE, verb, resource.group, resource.plural, part, namespace, name
                )
                if (await may.decide(asked))[0]:
                    full = f"{resource.plural}/{part}" if part else resource.plural
                    found.add(f"{verb} {full}")
    return found


def allowed(name: str) -> set[str]:
    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            return await allowed_of(api, name)

    return asyncio.run(main())


# What NodeRestriction narrows down to what is its own is marked with ! (flow/test_admission.py).
ALLOWED = """
certificatesigningrequests: create get list watch
csidrivers: get list watch
csinodes: create!
endpoints: get
events: create patch update
localsubjectaccessreviews: create
nodes: create! patch! update!
nodes/status: patch! update!
pods: create! delete!
pods/eviction: create!
pods/status: patch! update!
resourceslices: create! delete get patch update
runtimeclasses: get list watch
selfsubjectaccessreviews: create
selfsubjectreviews: create
selfsubjectrulesreviews: create
services: get list watch
subjectaccessreviews: create
tokenreviews: create
"""
OWN = """
csinodes: delete get patch update
nodes: get list watch
"""


def table(text: str) -> set[str]:
    lines = [line.partition(": ") for line in text.strip().splitlines()]
    return {f"{verb.rstrip('!')} {name}" for name, _, verbs in lines for verb in verbs.split()}


def test_a_node_may_do_this_and_nothing_else():
    assert allowed("somebody-elses") == table(ALLOWED)


def test_of_its_own_name_it_may_do_a_little_more():
    assert allowed("n1") == table(ALLOWED) | table(OWN)
