"""Reviews are no business of admission webhooks (ExcludeAdmissionWebhookVirtualResources). [A3]"""

import asyncio

import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.core.clock import SystemClock
from tests.support.generators.api_requests import api_server
from tests.support.worlds.control_plane import published_schema

HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
NOBODY = "https://127.0.0.1:9/hook"  # whoever asks there is told that nobody answers


def rule(groups, resources):
    return {
        "apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": resources,
    }  # fmt: skip


def configuration(*rules):
    hook = {
        "name": "all.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": NOBODY, "caBundle": ""}, "rules": list(rules),
        "failurePolicy": "Fail",
    }  # fmt: skip
    return {"metadata": {"name": "all"}, "webhooks": [hook]}


async def asked(api):
    spec = {"nonResourceAttributes": {"path": "/", "verb": "get"}}
    return (await api.post(REVIEWS, {"spec": spec})).status


@pytest.mark.parametrize(("minor", "status"), [("1.36", 500), ("1.37", 201)])
@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_a_webhook_that_hears_of_everything_does_not_hear_of_reviews(minor, status, kind):
    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            await api.made(HOOKS.format(kind), configuration(rule(["*"], ["*"])))
            assert await asked(api) == status
            token = await api.post(
                "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}}
            )
            assert token.status == 500

    with features.used(Release(minor)):
        asyncio.run(main())


def test_who_names_reviews_is_warned():
    mine, groups = "selfsubjectaccessreviews", ["authorization.k8s.io", "authentication.k8s.io"]

    async def main():
        async with api_server(published_schema(), clock=SystemClock()) as api:
            rules = rule(["*"], [mine]), rule(groups, ["tokenreviews", mine, mine, "pods"])
            made = await api.post(HOOKS.format("validating"), configuration(*rules))
            end = "is excluded from admission webhooks; this rule will have no effect"
            for name in (f"{mine}.{groups[0]}", f"tokenreviews.{groups[1]}"):
                assert f"webhooks[0].rules[1]: {name} {end}" in made.headers["warning"]
            assert made.headers["warning"].count("299") == 2

    with features.used(Release("1.37")):
        asyncio.run(main())
