"""Administrative access to devices, through the whole server. [A3] [S4]"""

from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates"


def claim(name, **asked):
    exactly = {"deviceClassName": "gpu", **asked}
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
    }  # fmt: skip


def template(name, **asked):
    made = claim(name, **asked)
    return {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}


def test_only_marked_namespaces_may_administer_devices():
    async def story():
        async with api_server(published_schema()) as api:
            marked = {"name": "admins", "labels": {"resource.kubernetes.io/admin-access": "true"}}
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": marked}
            assert (await api.post("/api/v1/namespaces", space)).status == 201
            assert (await api.post(CLAIMS.format("default"), claim("a"))).status == 201
            for url, made in (
                (CLAIMS, claim("b", adminAccess=True)), (TEMPLATES, template("b", adminAccess=True))
            ):  # fmt: skip
                refused = await api.post(url.format("default"), made)
                assert refused.status == 422
                said = refused.message
                path = "spec.devices.requests[0].adminAccess"
                assert f"{path}: Forbidden: admin access to devices requires" in said
                assert (await api.post(url.format("admins"), made)).status == 201

    virtual_time.run(story())
