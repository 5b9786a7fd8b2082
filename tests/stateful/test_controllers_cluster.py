"""Everything around the workloads comes to rest as well, whatever happened before.

The clock's jobs, finished jobs, namespaces with accounts, endpoints, nodes and their taints,
budgets, quotas, autoscalers, certificate requests: each on the real API under the same faults.
"""

import asyncio
import base64
from collections import Counter

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import seconds_of
from sampan.api.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from sampan.controllers.access.csr_requests import REQUESTS
from sampan.controllers.access.csr_signing import Ca
from sampan.controllers.catalog import ControllerSettings
from tests.support.parts.certificates import Authority
from tests.support.worlds.controller_worlds import (
    TOO_LATE,
    BaseWorld,
    absent,
    named_object,
    play,
    pod_of,
    steps,
)

EXAMPLES = settings(max_examples=20, deadline=None)
NUMBER = st.integers(0, 2)


JOB_TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


class ByTheClock(BaseWorld):
    """A CronJob of every minute; the test finishes its jobs."""

    def __init__(self, plane, policy):
        super().__init__(plane)
        self.policy, self.strokes = policy, Counter()

    async def begin(self):
        spec = {
            "schedule": "* * * * *",
            "concurrencyPolicy": self.policy,
            "successfulJobsHistoryLimit": 2,
            "jobTemplate": {"spec": {"template": JOB_TEMPLATE}},
        }
        await self.client.create(CRON_JOBS, named_object("batch/v1", "CronJob", "tick", spec=spec))

    async def do(self, verb, value):
        match verb:
            case "minutes":
                for _ in range(value):
                    await asyncio.sleep(60)
                    await self.look()
            case "finish":
                for one in (await self.running())[:value]:
                    await self.finish(one["metadata"]["name"])
            case "suspend":
                await self.merge(CRON_JOBS, "tick", {"spec": {"suspend": value}})

    async def running(self):
        return [
            one
            for one in await self.items(JOBS)
            if not (one.get("status") or {}).get("completionTime")
            and "deletionTimestamp" not in one["metadata"]
        ]

    async def finish(self, name):
        stamp = self.plane.time_text()
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": stamp}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"conditions": conditions, "startTime": stamp, "completionTime": stamp}
        await absent(self.merge(JOBS, name, {"status": status}, subresource="status"), NotFound)

    async def look(self):
        running = await self.running()
        if self.policy != "Allow":
            assert len(running) <= 1, "two at a time"
        for one in await self.items(JOBS):
            at = one["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
            self.strokes[at] |= 1 << hash(one["metadata"]["uid"]) % 60

    async def tend(self):
        await self.merge(CRON_JOBS, "tick", {"spec": {"suspend": True}})
        running = await self.running()
        for one in running:
            await self.finish(one["metadata"]["name"])
        return bool(running)

    async def check(self):
        await self.look()
        assert all(uids.bit_count() == 1 for uids in self.strokes.values()), "one job per stroke"
        assert len(await self.items(JOBS)) <= 2
        found = (await self.client.get(CRON_JOBS, "default", "tick")).get("status") or {}
        assert not found.get("active")
        if self.strokes:
            assert seconds_of(found["lastScheduleTime"]) >= seconds_of(max(self.strokes)) - 1


@pytest.mark.slow
@given(
    steps(
        st.tuples(st.just("minutes"), st.integers(1, 3)),
        st.tuples(st.just("finish"), st.integers(1, 3)),
        st.tuples(st.just("suspend"), st.booleans()),
    ),
    st.sampled_from(["Allow", "Forbid", "Replace"]),
)
@EXAMPLES
def test_every_stroke_of_the_clock_makes_at_most_one_job(told, policy):
    play(["cronjob", "garbagecollector"], lambda plane: ByTheClock(plane, policy), told)


class Finished(BaseWorld):
    """Jobs, some with a time to live, finished by the test."""

    def __init__(self, plane):
        super().__init__(plane)
        self.mortal, self.finished = set(), set()

    async def do(self, verb, value):
        number, ttl = value
        name = f"j{number}"
        match verb:
            case "job":
                spec = {"template": JOB_TEMPLATE}
                if ttl is not None:
                    spec["ttlSecondsAfterFinished"] = ttl
                try:
                    await self.client.create(JOBS, named_object("batch/v1", "Job", name, spec=spec))
                except TOO_LATE:
                    return
                self.finished.discard(name)
                self.mortal = self.mortal - {name} if ttl is None else self.mortal | {name}
            case "finish":
                stamp = self.plane.time_text()
                failed = {"type": "Failed", "status": "True", "lastTransitionTime": stamp}
                target = {**failed, "type": "FailureTarget"}
                status = {"conditions": [target, failed], "startTime": stamp}
                try:
                    await self.merge(JOBS, name, {"status": status}, subresource="status")
                except (NotFound, ApiError):
                    return
                self.finished.add(name)

    async def check(self):
        there = {one["metadata"]["name"] for one in await self.items(JOBS)}
        assert not there & self.mortal & self.finished, "one that should have gone"
        assert self.finished - self.mortal <= there, "one that should have stayed"


JOB_AND_TTL = st.tuples(NUMBER, st.sampled_from([None, 0, 50]))


@pytest.mark.slow
@given(steps(st.tuples(st.just("job"), JOB_AND_TTL), st.tuples(st.just("finish"), JOB_AND_TTL)))
@EXAMPLES
def test_finished_jobs_go_when_their_time_has_come(told):
    play(["ttl-after-finished", "garbagecollector"], Finished, told)


class Spaces(BaseWorld):
    """Namespaces with content, some of it held back, and what every namespace must have."""

    def __init__(self, plane):
        super().__init__(plane)
        self.deleted, self.held = set(), set()

    async def begin(self):
        for number in (0, 1):
            await self.do("namespace", number)

    async def do(self, verb, value):
        name = f"s{value}"
        match verb:
            case "namespace":
                if name not in self.deleted:
                    made = named_object("v1", "Namespace", name, "")
                    await absent(self.client.create(NAMESPACES, made), *TOO_LATE)
            case "content":
                await absent(
                    self.client.create(SECRETS, named_object("v1", "Secret", "s", name)), *TOO_LATE
                )
            case "held":
                meta = {"finalizers": ["example.com/held"]}
                made = named_object("v1", "ConfigMap", "held", name, meta=meta)
                try:
                    await self.client.create(CONFIG_MAPS, made)
                except TOO_LATE:
                    return
                self.held.add(name)
            case "free":
                self.held.discard(name)
                patch = {"metadata": {"finalizers": None}}
                await absent(self.merge(CONFIG_MAPS, "held", patch, name), *TOO_LATE)
            case "delete":
                try:
                    await self.client.delete(NAMESPACES, "", name)
                except TOO_LATE:
                    return
                self.deleted.add(name)
            case "rob":
                for resource, what in (
                    (SERVICE_ACCOUNTS, "default"),
                    (CONFIG_MAPS, "kube-root-ca.crt"),
                ):
                    await absent(self.client.delete(resource, name, what), *TOO_LATE)
            case "forge":
                forged = {"data": {"ca.crt": "forged"}}
                await absent(self.merge(CONFIG_MAPS, "kube-root-ca.crt", forged, name), *TOO_LATE)

    async def check(self):
        there = {one["metadata"]["name"]: one for one in await self.items(NAMESPACES, "")}
        for name in self.deleted:
            assert (name in there) == (name in self.held), name
        for name, space in there.items():
            if name in self.deleted:
                [left] = await self.items(CONFIG_MAPS, name)
                assert left["metadata"]["name"] == "held"
                assert await self.items(SECRETS, name) == []
                kinds = {
                    one["type"] for one in space["status"]["conditions"] if one["status"] == "True"
                }
                assert kinds == {"NamespaceContentRemaining", "NamespaceFinalizersRemaining"}
                continue
            assert await self.client.get(SERVICE_ACCOUNTS, name, "default")
            root = await self.client.get(CONFIG_MAPS, name, "kube-root-ca.crt")
            assert root["data"] == {"ca.crt": "PEM"}


SPACE_VERBS = ["namespace", "content", "held", "free", "delete", "rob", "forge"]


@pytest.mark.slow
@given(steps(*(st.tuples(st.just(verb), NUMBER) for verb in SPACE_VERBS), most=14))
@example([("rob", 0), ("cut", True), ("rob", 0)])  # made and gone again between two lists
@EXAMPLES
def test_namespaces_end_when_they_are_empty_and_have_what_they_need_until_then(told):
    play(["namespace", "serviceaccount", "root-ca-cert-publisher"], Spaces, told)


class Addresses(BaseWorld):
    """One service, and pods that come, get ready, are renamed and go."""

    async def begin(self):
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        spec = {"selector": {"app": "web"}, "ports": ports}
        await self.client.create(SERVICES, named_object("v1", "Service", "web", spec=spec))

    async def do(self, verb, value):
        number, state = value
        name = f"p{number}"
        match verb:
            case "pod":
                made = pod_of(name, {"app": "web"}, nodeName="n")
                await absent(self.client.create(PODS, made), *TOO_LATE)
            case "ready":
                await absent(self.run_pod(name, state, f"10.0.0.{number + 1}"), NotFound)
            case "label":
                labels = {"app": "web" if state else "other"}
                patch = {"metadata": {"labels": labels}}
                await absent(self.merge(PODS, name, patch), NotFound)
            case "delete":
                gone = self.client.delete(PODS, "default", name, grace_seconds=0)
                await absent(gone, NotFound)
            case "spoil":
                for one in await self.items(ENDPOINT_SLICES):
                    if one["metadata"]["name"] != "kubernetes":
                        spoilt = {"endpoints": [{"addresses": ["10.9.9.9"]}]}
                        wrong = self.merge(ENDPOINT_SLICES, one["metadata"]["name"], spoilt)
                        await absent(wrong, NotFound)

    async def check(self):
        wanted = {}
        for one in await self.items(PODS):
            if one["metadata"]["labels"]["app"] == "web" and one["status"].get("podIP"):
                [ready] = [c for c in one["status"]["conditions"] if c["type"] == "Ready"]
                wanted[one["status"]["podIP"]] = ready["status"] == "True"
        found = {}
        for page in await self.items(ENDPOINT_SLICES):
            if page["metadata"]["name"] == "kubernetes":
                continue
            for one in page.get("endpoints") or ():
                [address] = one["addresses"]
                assert address not in found, "in two slices"
                found[address] = one["conditions"]["ready"]
        assert found == wanted
        old = {}
        for subset in (await self.client.get(ENDPOINTS, "default", "web")).get("subsets") or ():
            for field, ready in (("addresses", True), ("notReadyAddresses", False)):
                old |= {one["ip"]: ready for one in subset.get(field) or ()}
        assert old == wanted


ADDRESS = st.tuples(NUMBER, st.booleans())


@pytest.mark.slow
@given(
    steps(
        *(st.tuples(st.just(v), ADDRESS) for v in ("pod", "ready", "label", "delete", "spoil")),
        most=14,
    )
)
@EXAMPLES
def test_slices_and_endpoints_say_which_pods_are_there(told):
    play(["endpointslice", "endpoint"], Addresses, told)


class Nodes(BaseWorld):
    """Two nodes that live and fall silent; on each a pod that stays and one that does not."""

    def __init__(self, plane):
        super().__init__(plane)
        self.alive = {"n0": True, "n1": True}
        self.turn = 0

    async def begin(self):
        for name in self.alive:
            await self.client.create(NODES, named_object("v1", "Node", name, ""))
            lease = {"holderIdentity": name, "leaseDurationSeconds": 40}
            made = named_object(
                "coordination.k8s.io/v1", "Lease", name, "kube-node-lease", spec=lease
            )
            await self.client.create(LEASES, made)
            await self.report(name)
            loyal = [{"operator": "Exists"}]
            await self.client.create(
                PODS, pod_of(f"loyal-{name}", nodeName=name, tolerations=loyal)
            )
            await self.client.create(PODS, pod_of(f"fickle-{name}", nodeName=name))

    async def report(self, name):
        stamp = self.plane.time_text()
        ready = {
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
            "lastHeartbeatTime": stamp, "lastTransitionTime": stamp,
        }  # fmt: skip
        patch = {"status": {"conditions": [ready]}}
        await self.client.patch(NODES, "", name, patch, subresource="status")

    async def do(self, verb, value):
        match verb:
            case "silence":
                self.alive[f"n{value % 2}"] = False
            case "return":
                self.alive[f"n{value % 2}"] = True
                await self.report(f"n{value % 2}")
            case "live":
                await self.live(12 * value)

    async def live(self, beats):
        for _ in range(beats):
            await asyncio.sleep(10)
            self.turn += 1
            minute, second = divmod(self.turn, 60)
            renewed = {"spec": {"renewTime": f"2026-01-01T00:{minute:02}:{second:02}.000000Z"}}
            for name in [one for one, alive in self.alive.items() if alive]:
                await self.merge(LEASES, name, renewed, "kube-node-lease")
                node = await self.client.get(NODES, "", name)
                [ready] = node["status"]["conditions"][:1]
                if ready["status"] != "True":
                    await self.report(name)

    async def check(self):
        await self.live(45)  # longer than grace and tolerance together
        await self.plane.settled()
        for name, alive in self.alive.items():
            node = await self.client.get(NODES, "", name)
            [ready] = [c for c in node["status"]["conditions"] if c["type"] == "Ready"]
            assert ready["status"] == ("True" if alive else "Unknown"), name
            taints = {one["key"] for one in node["spec"].get("taints") or ()}
            assert ("node.kubernetes.io/unreachable" in taints) != alive, (name, taints)
            there = {
                one["metadata"]["name"]
                for one in await self.items(PODS)
                if "deletionTimestamp" not in one["metadata"]
            }
            assert f"loyal-{name}" in there
            # Where nobody answers, the network is to blame rather than the nodes: nobody is moved.
            if not alive and any(self.alive.values()):
                assert f"fickle-{name}" not in there


@pytest.mark.slow
@given(
    steps(
        st.tuples(st.just("silence"), NUMBER),
        st.tuples(st.just("return"), NUMBER),
        st.tuples(st.just("live"), st.integers(1, 3)),
    )
)
@settings(max_examples=12, deadline=None)
def test_silent_nodes_are_marked_and_left_and_others_are_not(told):
    names = ["nodelifecycle", "taint-eviction-controller"]
    play(names, Nodes, told, rest_seconds=0.0)


class Budget(BaseWorld):
    def __init__(self, plane, least):
        super().__init__(plane)
        self.least = least

    async def begin(self):
        spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": self.least}
        made = named_object("policy/v1", "PodDisruptionBudget", "web", spec=spec)
        await self.client.create(POD_DISRUPTION_BUDGETS, made)

    async def do(self, verb, value):
        number, state = value
        name = f"p{number}"
        match verb:
            case "pod":
                made = pod_of(name, {"app": "web"}, nodeName="n")
                await absent(self.client.create(PODS, made), *TOO_LATE)
            case "ready":
                await absent(self.run_pod(name, state), NotFound)
            case "evict":
                eviction = named_object("policy/v1", "Eviction", name)
                asked = self.client.create(
                    PODS, eviction, "default", subresource="eviction", name=name
                )
                await absent(asked, ApiError)
            case "change":
                self.least = number
                patch = {"spec": {"minAvailable": number}}
                await self.merge(POD_DISRUPTION_BUDGETS, "web", patch)

    async def tend(self):
        """What is being deleted goes."""
        going = [one for one in await self.items(PODS) if "deletionTimestamp" in one["metadata"]]
        for one in going:
            name = one["metadata"]["name"]
            await self.client.delete(PODS, "default", name, grace_seconds=0)
        return bool(going)

    async def check(self):
        pods = await self.items(PODS)
        healthy = sum(
            one["type"] == "Ready" and one["status"] == "True"
            for pod in pods
            for one in pod["status"].get("conditions") or ()
        )
        found = (await self.client.get(POD_DISRUPTION_BUDGETS, "default", "web"))["status"]
        assert found["expectedPods"] == len(pods)
        assert (found["currentHealthy"], found["desiredHealthy"]) == (healthy, self.least)
        assert found["disruptionsAllowed"] == max(0, healthy - self.least)


@pytest.mark.slow
@given(
    steps(*(st.tuples(st.just(v), ADDRESS) for v in ("pod", "ready", "evict", "change")), most=14),
    NUMBER,
)
@EXAMPLES
def test_a_budget_says_how_many_may_go(told, least):
    play(["disruption"], lambda plane: Budget(plane, least), told, rest_seconds=200.0)


class Quota(BaseWorld):
    async def begin(self):
        hard = {"pods": "9", "requests.cpu": "5", "configmaps": "9", "count/secrets": "9"}
        made = named_object("v1", "ResourceQuota", "q", spec={"hard": hard})
        await self.client.create(RESOURCE_QUOTAS, made)

    async def do(self, verb, value):
        resource, kind = {
            "p": (PODS, "Pod"),
            "c": (CONFIG_MAPS, "ConfigMap"),
            "s": (SECRETS, "Secret"),
        }[value[0]]
        name = f"o{value[1]}"
        match verb:
            case "create":
                made = pod_of(name) if kind == "Pod" else named_object("v1", kind, name)
                await absent(self.client.create(resource, made), *TOO_LATE)
            case "delete":
                gone = self.client.delete(resource, "default", name, grace_seconds=0)
                await absent(gone, NotFound)
            case "spoil":
                spoilt = {"status": {"used": {"pods": "7"}}}
                await self.merge(RESOURCE_QUOTAS, "q", spoilt, subresource="status")

    async def check(self):
        pods = len(await self.items(PODS))
        used = (await self.client.get(RESOURCE_QUOTAS, "default", "q"))["status"]["used"]
        cpu = f"{pods}00m" if pods else "0"
        assert used == {
            "pods": str(pods),
            "requests.cpu": cpu,
            "configmaps": str(len(await self.items(CONFIG_MAPS))),
            "count/secrets": str(len(await self.items(SECRETS))),
        }


@pytest.mark.slow
@given(
    steps(
        *(
            st.tuples(st.just(verb), st.tuples(st.sampled_from("pcs"), NUMBER))
            for verb in ("create", "delete", "spoil")
        ),
        most=14,
    )
)
@EXAMPLES
def test_a_quota_counts_what_is_there(told):
    play(["resourcequota"], Quota, told)


class Scaled(BaseWorld):
    """A Deployment's size between bounds that move; without metrics nothing else may move it."""

    def __init__(self, plane):
        super().__init__(plane)
        self.bounds, self.size = (1, 5), 2

    async def begin(self):
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        selector = {"matchLabels": {"app": "web"}}
        spec = {"replicas": 2, "selector": selector, "template": template}
        await self.client.create(
            DEPLOYMENTS, named_object("apps/v1", "Deployment", "web", spec=spec)
        )
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        made = named_object(
            "autoscaling/v2", "HorizontalPodAutoscaler", "web",
            spec={"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5},
        )  # fmt: skip
        await self.client.create(HORIZONTAL_POD_AUTOSCALERS, made)

    async def do(self, verb, value):
        low, more = value
        match verb:
            case "bounds":
                self.bounds = (low + 1, low + 1 + more)
                spec = {"minReplicas": low + 1, "maxReplicas": low + 1 + more}
                await self.merge(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": spec})
            case "scale":
                await self.merge(DEPLOYMENTS, "web", {"spec": {"replicas": low + more}})

    async def check(self):
        size = (await self.client.get(DEPLOYMENTS, "default", "web"))["spec"]["replicas"]
        low, high = self.bounds
        assert size == 0 or low <= size <= high, "0 is the user's way to switch it off"
        before = await self.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web")
        await self.plane.settled(seconds=60)
        # It goes on telling, in events, that nobody measures the pods.
        assert await self.client.get(HORIZONTAL_POD_AUTOSCALERS, "default", "web") == before


@pytest.mark.slow
@given(steps(*(st.tuples(st.just(v), st.tuples(NUMBER, NUMBER)) for v in ("bounds", "scale"))))
@EXAMPLES
def test_an_autoscaler_keeps_its_target_within_bounds(told):
    names = ["horizontalpodautoscaling", "deployment", "replicaset"]
    play(names, Scaled, told, rest_seconds=0.0)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("ca"))
    return Ca(made.ca_path.read_bytes(), made.ca_key_pem())


@pytest.fixture(scope="module")
def request_pem():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "somebody")])
    built = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    return built.public_bytes(serialization.Encoding.PEM)


class Certificates(BaseWorld):
    def __init__(self, plane, pem):
        super().__init__(plane)
        self.pem, self.verdicts = base64.b64encode(pem).decode(), {}

    async def do(self, verb, value):
        name = f"r{value}"
        match verb:
            case "ask":
                spec = {
                    "request": self.pem,
                    "signerName": "kubernetes.io/kube-apiserver-client",
                    "usages": ["client auth"],
                }
                made = named_object(
                    "certificates.k8s.io/v1", "CertificateSigningRequest", name, "", spec=spec
                )
                try:
                    await self.client.create(REQUESTS, made)
                except TOO_LATE:
                    return
                self.verdicts[name] = None
            case "Approved" | "Denied":
                try:
                    csr = await self.client.get(REQUESTS, "", name)
                except NotFound:
                    return
                if self.verdicts[name] is None:
                    said = {"type": verb, "status": "True", "reason": "StageEvent", "message": ""}
                    csr = {**csr, "status": {**(csr.get("status") or {}), "conditions": [said]}}
                    await self.client.update(REQUESTS, csr, subresource="approval")
                    self.verdicts[name] = verb

    async def check(self):
        there = {one["metadata"]["name"]: one for one in await self.items(REQUESTS, "")}
        assert there.keys() == self.verdicts.keys()
        for name, verdict in self.verdicts.items():
            signed = "certificate" in (there[name].get("status") or {})
            assert signed == (verdict == "Approved"), name
        await self.plane.settled(seconds=25 * 3600)
        assert await self.items(REQUESTS, "") == [], "old ones are cleared away"


@pytest.mark.slow
@given(told=steps(*(st.tuples(st.just(v), NUMBER) for v in ("ask", "Approved", "Denied")), most=12))
@EXAMPLES
def test_what_was_approved_is_signed_and_nothing_else(told, authority, request_pem):
    names = [
        "csrsigning",
        "certificatesigningrequest-approving-controller",
        "csrcleaner",
    ]
    settings = ControllerSettings(root_ca="PEM", ca=authority)
    play(names, lambda plane: Certificates(plane, request_pem), told, settings=settings)
