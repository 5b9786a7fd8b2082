"""What admission makes of stored objects costs a few lines for each of their items, not for each
pair of them; and nothing stays of what they name."""

import pytest

from sampan.api.custom.custom_version import custom_of
from sampan.api.resources import CONFIG_MAPS, RESOURCE_QUOTAS
from sampan.api.validation.storage.storage import validate_storage_class
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.extension.definition_rows import rows_of
from sampan.client.inprocess import InProcessClient
from tests.growth.line_counts import Counts, counted
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

N = 150
MOST_LINES = 150  # for each name of a quota
HOOKS = "/apis/admissionregistration.k8s.io/v1"
COUNTER = "system:kube-controller-manager"


def quota(count):
    hard = {f"count/k{n}.example.com": "1" for n in range(count)}
    hard["count/configmaps"] = "100"
    return {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}


def lines_of(count):
    """Of a count by the server, and of a charge."""
    counts: Counts = Counts()

    async def main():
        async with api_server(published_schema()) as api:
            client = InProcessClient(api.server.as_user(User(COUNTER, (MASTERS,))), "me")
            cache = api.server._registry.cache
            made = await client.create(RESOURCE_QUOTAS, quota(count))
            kinds = len(cache.kinds())
            with counted(counts):
                await client.update(RESOURCE_QUOTAS, made, subresource="status")
                await client.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
            found = await client.get(RESOURCE_QUOTAS, "default", "q")
            assert found["status"]["used"]["count/configmaps"] == "2"  # with the root's certificate
            assert len(found["status"]["used"]) == count + 1
            assert len(cache.kinds()) - kinds < 5

    virtual_time.run(main())
    return counts


def grown(few, many):
    """Lines for each item, by place."""
    return {place: (many[place] - few[place]) / N for place in many}


@pytest.mark.slow
def test_a_quota_costs_a_few_lines_for_each_of_its_names():
    few, many = lines_of(N), lines_of(2 * N)
    more = grown(few, many)
    assert sum(more.values()) <= MOST_LINES, sorted(more.items(), key=lambda one: -one[1])[:5]


def definition(count):
    """Established, with so many versions."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = {"plural": "xs", "kind": "X", "singular": "x", "listKind": "XList"}
    versions = [
        {"name": f"v{n + 1}", "served": True, "storage": n == 0, "schema": schema}
        for n in range(count)
    ]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    return {"metadata": {"name": "xs.example.com"}, "spec": spec, "status": status}


def test_a_definition_costs_a_few_lines_for_each_of_its_versions():
    def lines_of(count):
        before = rows_of(definition(count), published_schema())
        counts: Counts = Counts()
        with counted(counts):
            rows = rows_of(definition(count), published_schema(), before)
        alike = [custom_of(row).schema_token is custom_of(old).schema_token
                 for row, old in zip(rows, before, strict=True)]  # fmt: skip
        assert alike == [True] * count
        return counts

    assert sum(grown(lines_of(N), lines_of(2 * N)).values()) <= MOST_LINES


def test_another_webhook_costs_a_few_lines():
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}

    def hooks(count):
        spec = {
            "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "rules": [rule],
        }  # fmt: skip
        webhooks = [{"name": f"h{n}.example.com", **spec} for n in range(count)]
        return {"metadata": {"name": "w"}, "webhooks": webhooks}

    def lines_of(count):
        counts: Counts = Counts()

        async def main():
            async with api_server(published_schema()) as api:
                await api.made(f"{HOOKS}/validatingwebhookconfigurations", hooks(count))
                await api.made(f"{HOOKS}/mutatingwebhookconfigurations", hooks(count))
                with counted(counts):
                    path = "/api/v1/namespaces/default/configmaps"
                    await api.made(path, {"metadata": {"name": "c"}})

        virtual_time.run(main())
        return counts

    assert sum(grown(lines_of(N), lines_of(2 * N)).values()) <= MOST_LINES


def test_another_topology_costs_a_few_lines():
    def lines_of(count):
        counts, errors = Counts(), []
        terms = [
            {"matchLabelExpressions": [{"key": f"k{n}", "values": ["v"]}]} for n in range(count)
        ]
        with counted(counts):
            validate_storage_class({"provisioner": "a.b/c", "allowedTopologies": terms}, errors)
            validate_storage_class(
                {"provisioner": "a.b/c", "allowedTopologies": [{}] * count}, errors
            )
        assert 10 * count - 100 < len(errors) <= 11 * count
        return counts

    assert sum(grown(lines_of(N), lines_of(2 * N)).values()) <= MOST_LINES
