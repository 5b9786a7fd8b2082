"""Trust bundles and certificates of pods on a simulated node, in virtual time [N15] [H7]."""

import asyncio

import pytest

from sampan.api import features
from sampan.api.errors import not_found
from sampan.api.features import Release
from sampan.api.objects import name_of, seconds_of, time_text
from sampan.api.resources import CLUSTER_TRUST_BUNDLES, POD_CERTIFICATE_REQUESTS, SERVICE_ACCOUNTS
from sampan.api.served import spoken
from tests.support import virtual_time
from tests.support.certificate_story import bundle, certificate
from tests.support.worlds.simulated_node import SimulatedNode

GATES = {
    "ClusterTrustBundle": True,
    "ClusterTrustBundleProjection": True,
    "PodCertificateRequest": True,
}
SIGNER = "example.com/pods"
DAY = 86400.0


def told(story, release=None):
    async def run():
        async with SimulatedNode() as node:
            await node.api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "default")
            await story(node)

    with features.used(release or Release(gates=GATES)):
        virtual_time.run(run())


def volume(**source):
    return {"volumes": [{"name": "v", "projected": {"sources": [source]}}]}


def requests(node):
    return node.api.objects(spoken(POD_CERTIFICATE_REQUESTS))


async def decide(node, kind, request=None, seconds=DAY):
    """As a signer."""
    request = request or requests(node)[-1]
    now = node.clock.now()
    status = {"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m"}]}
    if kind == "Issued":
        status |= {
            "certificateChain": certificate(now=now),
            "notBefore": time_text(now),
            "beginRefreshAt": time_text(now + seconds / 2),
            "notAfter": time_text(now + seconds),
        }
    row = spoken(POD_CERTIFICATE_REQUESTS)
    await node.api.patch(row, "default", name_of(request), {"status": status})


CERTIFICATE = {"signerName": SIGNER, "keyType": "ECDSAP256", "credentialBundlePath": "all.pem"}


@pytest.mark.parametrize("minor", ["1.34", "1.35", "1.36", "1.37"])
def test_a_pod_runs_once_its_certificate_is_issued(minor):
    async def story(node):
        made = await node.make(
            **volume(podCertificate={**CERTIFICATE, "userAnnotations": {"a.b/c": "d"}})
        )
        await node.until(lambda: len(requests(node)) == 1)
        [asked] = requests(node)
        spec, meta = asked["spec"], asked["metadata"]
        assert (spec["signerName"], spec["podUID"]) == (SIGNER, made["metadata"]["uid"])
        assert spec["unverifiedUserAnnotations"] == {"a.b/c": "d"}
        assert ("stubPKCS10Request" in spec) == (minor in ("1.36", "1.37"))
        assert ("pkixPublicKey" in spec) == (minor in ("1.34", "1.35"))
        [owner] = meta["ownerReferences"]
        assert owner["apiVersion"] == ("v1" if minor in ("1.36", "1.37") else "core/v1")
        await node.until(lambda: any("not issued yet" in text for _, text in node.events()))
        assert node.status()["phase"] == "Pending"
        await decide(node, "Issued")
        await node.until_phase("Running")
        assert len(requests(node)) == 1
        await node.delete()
        await node.until(lambda: not node.has())

    told(story, Release(minor, gates=GATES))


def test_a_certificate_is_renewed_in_its_second_half():
    async def story(node):
        await node.make(**volume(podCertificate=CERTIFICATE))
        await node.until(lambda: len(requests(node)) == 1)
        await decide(node, "Issued")
        await node.until_phase("Running")
        await node.until(lambda: len(requests(node)) == 2, DAY, every=60.0)
        assert DAY / 2 <= node.clock.now() - started(node) <= DAY / 2 + 600
        await decide(node, "Issued", seconds=3600.0)
        await node.until(lambda: len(requests(node)) == 3, DAY, every=60.0)
        # Nobody signs: it is told when the refresh is overdue, and when the certificate is over.
        for reason in ("CertificateOverdueForRefresh", "CertificateExpired"):
            await node.until(lambda reason=reason: reason in dict(node.events()), DAY, every=60.0)
        assert node.status()["phase"] == "Running"

    def started(node):
        return seconds_of(requests(node)[0]["metadata"]["creationTimestamp"])

    told(story)


@pytest.mark.parametrize("kind", ["Denied", "Failed"])
def test_a_pod_whose_certificate_is_refused_is_told_so(kind):
    async def story(node):
        await node.make(**volume(podCertificate=CERTIFICATE))
        await node.until(lambda: len(requests(node)) == 1)
        await decide(node, kind)
        words = f'PodCertificateRequest was permanently {kind.lower()}: reason="R" message="m"'
        await node.until(lambda: any(words in text for _, text in node.events()))
        assert kind in dict(node.events())
        await asyncio.sleep(3600.0)
        assert len(requests(node)) == 1

    told(story)


def test_an_agent_that_comes_back_asks_anew():
    """As upstream: keys are nowhere but in memory."""

    async def story(node):
        await node.make(**volume(podCertificate=CERTIFICATE))
        await node.until(lambda: len(requests(node)) == 1)
        await node.stop()
        await node.start()
        await node.until(lambda: len(requests(node)) == 2)
        await decide(node, "Issued")
        await node.until_phase("Running")

    told(story)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"name": "roots"}, 'clustertrustbundle.certificates.k8s.io "roots" not found'),
        ({"signerName": SIGNER, "labelSelector": {}}, "matched zero ClusterTrustBundles"),
        ({"signerName": SIGNER, "labelSelector": {"matchLabels": {"a": "b"}}}, "matched zero"),
    ],
)
def test_a_pod_waits_for_its_roots_unless_they_are_optional(source, why):
    async def story(node):
        part = {"path": "roots.pem", **source}
        await node.make(**volume(clusterTrustBundle=part))
        await node.make("free", **volume(clusterTrustBundle={**part, "optional": True}))
        await node.until_phase("Running", "free")
        await node.until(lambda: any(why in text for _, text in node.events()))
        signer = source.get("signerName", "")
        made = bundle(
            "example.com:pods:a" if signer else "roots", "v1", certificate(ca=True), signer
        )
        made["metadata"]["labels"] = {"a": "b"}
        await node.api.create(spoken(CLUSTER_TRUST_BUNDLES), made)
        await node.until_phase("Running")

    told(story)


def test_a_signer_without_a_selector_selects_nothing():
    async def story(node):
        made = bundle("example.com:pods:a", "v1", certificate(ca=True), SIGNER)
        await node.api.create(spoken(CLUSTER_TRUST_BUNDLES), made)
        await node.make(**volume(clusterTrustBundle={"path": "x", "signerName": SIGNER}))
        words = "combination of signerName and labelSelector matched zero ClusterTrustBundles"
        await node.until(lambda: any(words in text for _, text in node.events()))

    told(story)


def test_where_the_kind_is_not_served_pods_are_told():
    async def story(node):
        row = spoken(CLUSTER_TRUST_BUNDLES)
        node.api.without[row.plural] = not_found(row.plural, row.group, "")
        await node.make(**volume(clusterTrustBundle={"path": "x", "name": "roots"}))
        words = "ClusterTrustBundle projection is not supported in static kubelet mode"
        await node.until(lambda: any(words in text for _, text in node.events()))

    told(story)
