"""DRAResourceClaimGranularStatusAuthorization: rights to the parts of a claim. [A2]"""

from sampan.api import features
from sampan.api.features import Release
from sampan.apiserver.admission.builtin.claim_status_rights import changed_drivers, driver_verbs
from sampan.apiserver.authn.user import User
from tests.flow.test_authorization import grant
from tests.flow.test_device_admin_access import CLAIMS, claim
from tests.support import virtual_time
from tests.support.generators.api_requests import MERGE, api_server
from tests.support.worlds.control_plane import published_schema

GROUP = {"apiGroups": ["resource.k8s.io"]}
STATUS = {**GROUP, "resources": ["resourceclaims/status"], "verbs": ["update", "patch"]}
NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
ALLOCATION = {
    "devices": {"results": [
        {"request": "r", "driver": "gpu.example.org", "pool": "n1", "device": "d1"}
    ]},
    "nodeSelector": {"nodeSelectorTerms": [NODE]},
}  # fmt: skip


def device(**more):
    return {"driver": "gpu.example.org", "pool": "n1", "device": "d1", **more}


def run(story, release):
    async def main():
        async with api_server(published_schema()) as api:
            await api.made(CLAIMS.format("default"), claim("a"))
            await story(api)

    with features.used(release):
        virtual_time.run(main())


async def patched(api, user, **status):
    headers = {"content-type": MERGE}
    path = f"{CLAIMS.format('default')}/a/status"
    body = {"status": status}
    return await api.send("PATCH", path, body, user=user, group="", headers=headers)


def test_allocations_and_devices_take_rights_of_their_own():
    async def story(api):
        for user in ("binder", "driver", "other"):
            more = [] if user != "binder" else [
                {**GROUP, "resources": ["resourceclaims/binding"], "verbs": ["patch"]}
            ]  # fmt: skip
            await grant(api, user, STATUS, *more)
        telling = {
            **GROUP, "resources": ["resourceclaims/driver"], "verbs": ["arbitrary-node:patch"],
            "resourceNames": ["gpu.example.org"],
        }  # fmt: skip
        await grant(api, "driver", telling, namespace="default")
        refused = await patched(api, "other", allocation=ALLOCATION)
        assert refused.status == 422
        assert refused.message == (
            'ResourceClaim.resource.k8s.io "a" is invalid: status.allocation: Forbidden: changing '
            "status.allocation or status.reservedFor requires "
            'resource="resourceclaims/binding", verb="patch" permission: '
            'resourceclaims.resource.k8s.io is forbidden: User "other" cannot patch resource '
            '"resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'
        )
        assert (await patched(api, "binder", allocation=ALLOCATION)).status == 200
        assert (await patched(api, "driver", devices=[device()])).status == 200
        refused = await patched(api, "binder", devices=[device(data={"a": 1})])
        assert refused.status == 422
        assert refused.message.endswith(
            'requires resource="resourceclaims/driver", verb="[arbitrary-node:patch]" permission: '
            'resourceclaims.resource.k8s.io "gpu.example.org" is forbidden: User "binder" cannot '
            'arbitrary-node:patch resource "resourceclaims/driver" in API group "resource.k8s.io" '
            'in the namespace "default"'
        )
        assert (await patched(api, "other", devices=[device()])).status == 200, "nothing changes"

    run(story, Release("1.37"))


def test_without_the_gate_the_status_is_one():
    async def story(api):
        await grant(api, "other", STATUS)
        assert (await patched(api, "other", allocation=ALLOCATION)).status == 200
        assert (await patched(api, "other", devices=[device()])).status == 200

    run(story, Release("1.35"))


def test_an_account_on_the_claims_node_may_do_with_less():
    extra = {"authentication.kubernetes.io/node-name": ("n1",)}
    agent = User("system:serviceaccount:kube-system:agent", extra=extra)
    assert driver_verbs(agent, "update", ALLOCATION) == [
        "associated-node:update", "arbitrary-node:update"
    ]  # fmt: skip
    two = {**ALLOCATION, "nodeSelector": {"nodeSelectorTerms": [NODE, NODE]}}
    for user, allocation in (
        (User("agent", extra=extra), ALLOCATION), (User(agent.name), ALLOCATION), (agent, two),
        (agent, {}),
    ):  # fmt: skip
        assert driver_verbs(user, "update", allocation) == ["arbitrary-node:update"]


def test_drivers_are_asked_about_whose_devices_changed():
    old = {"devices": [device(), device(shareID="1"), device(driver="b"), device(driver="c")]}
    new = {"devices": [device(), device(shareID="2"), device(driver="b"), device(driver="c", x=1)]}
    assert changed_drivers(new, old) == ["c", "gpu.example.org"]
    assert changed_drivers({}, {"devices": [device(driver="b")]}) == ["b"]
    assert changed_drivers(old, old) == []
