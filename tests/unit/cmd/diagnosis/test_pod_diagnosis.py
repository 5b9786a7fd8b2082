"""[X2] Stories of pods that do not come up: what is found at each step."""

import pytest

from sampan.cmd.diagnosis.pod_diagnosis import diagnosis

NODE = {"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
PROBE = {"httpGet": {"path": "/ready", "port": 8080}, "timeoutSeconds": 2}


def pod(*containers, inits=(), conditions=(), spec=(), **more):
    """`containers`: (status of each, its spec)."""
    return {
        "metadata": {"name": "web", "namespace": "default", **more.pop("meta", {})},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": one["name"], **of} for one, of in containers],
            "initContainers": [{"name": one["name"], **of} for one, of in inits],
            **dict(spec),
        },
        "status": {
            "containerStatuses": [one for one, _ in containers],
            "initContainerStatuses": [one for one, _ in inits],
            "conditions": [{"type": kind, "status": status} for kind, status in conditions],
            **more,
        },
    }


def waits(reason, message="", name="c", **more):
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, **more}


def runs(name="c", **more):
    return {"name": name, "state": {"running": {"startedAt": "T"}}, "ready": True, **more}


def ended(code, reason="Error", name="c", **more):
    return {"name": name, "state": {"terminated": {"exitCode": code, "reason": reason}}, **more}


def event(reason, message, container=""):
    about = {"fieldPath": f"spec.containers{{{container}}}"} if container else {}
    return {"reason": reason, "message": message, "involvedObject": about}


def found(made, *events, node=NODE):
    return [(one.where, one.what, one.why) for one in diagnosis(made, events, node)]


def advice(made, *events, node=NODE):
    [one] = diagnosis(made, events, node)
    return one.advice


def test_an_image_that_cannot_be_pulled():
    """First the pull runs, then it fails, then it waits, then it is there."""
    pulling = event("Pulling", 'Pulling image "web:9"', "c")
    creating = pod((waits("ContainerCreating"), {}))
    assert found(creating, pulling) == [("container c", "starting", 'Pulling image "web:9"')]
    failed = event("Failed", 'Failed to pull image "web:9": manifest unknown', "c")
    backing = pod((waits("ImagePullBackOff", 'Back-off pulling image "web:9"'), {}))
    waits_again = event("Failed", "Error: ImagePullBackOff", "c")
    assert found(backing, pulling, failed, waits_again) == [
        ("container c", "ImagePullBackOff", 'Failed to pull image "web:9": manifest unknown')
    ]
    assert "no such image" in advice(backing, pulling, failed)
    pulled = event("Pulled", "Successfully pulled", "c")
    assert found(pod((runs(), {})), pulling, failed, pulled) == []


@pytest.mark.parametrize(
    ("reason", "message", "what_to_do"),
    [
        ("ErrImagePull", "pull access denied, authorization failed", "imagePullSecrets"),
        ("ErrImagePull", "dial tcp: lookup reg.example: no such host", "does not resolve"),
        ("ErrImagePull", "dial tcp 10.0.0.1:443: i/o timeout", "does not reach the registry"),
        ("InvalidImageName", "couldn't parse image name", "correct it"),
        ("ErrImageNeverPull", "not present with pull policy of Never", "imagePullPolicy is Never"),
        ("CreateContainerConfigError", 'configmap "settings" not found', "optional: true"),
        ("CreateContainerConfigError", "couldn't find key a in Secret default/s", "add the key"),
        ("CreateContainerConfigError", "container has runAsNonRoot", "runAsUser"),
        ("CreateContainerError", "exec: executable file not found in $PATH", "command and args"),
        ("CreateContainerError", "listen 127.0.0.1: failed", "see the message"),
    ],
)
def test_a_container_that_cannot_be_made(reason, message, what_to_do):
    made = pod((waits(reason, message), {}))
    assert found(made) == [("container c", reason, message)]
    assert what_to_do in advice(made)


@pytest.mark.parametrize(
    ("code", "reason", "what_to_do"),
    [
        (137, "OOMKilled", "resources.limits.memory, or make it use less (it is 64Mi)"),
        (1, "Error", "an error of its own"),
        (127, "Error", "not in the image"),
        (139, "Error", "segmentation fault"),
        (0, "Completed", "use a Job"),
    ],
)
def test_a_container_that_ends_again_and_again(code, reason, what_to_do):
    last = {"terminated": {"exitCode": code, "reason": reason}}
    of = {"resources": {"limits": {"memory": "64Mi"}}}
    made = pod((waits("CrashLoopBackOff", restartCount=4, lastState=last), of))
    [(where, what, why)] = found(made)
    assert (where, what) == ("container c", "CrashLoopBackOff")
    assert why == f"4 restart(s); the last run ended: exit code {code} ({reason})"
    assert what_to_do in advice(made)
    assert "--previous" in advice(made)


def test_of_a_container_that_never_ran_the_runtime_knows_why():
    message = 'exec: "/x": stat /x: no such file or directory'
    last = {"terminated": {"exitCode": 128, "reason": "StartError", "message": message}}
    made = pod((waits("CrashLoopBackOff", restartCount=2, lastState=last), {}))
    [(_, what, why)] = found(made)
    assert what == "CrashLoopBackOff"
    assert message in why
    assert advice(made).endswith("the command is not in the image: correct command and args")


def test_a_container_whose_liveness_probe_fails():
    """It is not the program that ends: it is killed."""
    last = {"terminated": {"exitCode": 137, "reason": "Error"}}
    made = pod((runs(restartCount=2, lastState=last), {"livenessProbe": PROBE}))
    events = [
        event("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", "c"),
        event("Killing", "Container c failed liveness probe, will be restarted", "c"),
    ]
    assert found(made, *events) == [
        (
            "container c", "restarted",
            "2 restart(s); its liveness probe fails: Liveness probe failed: HTTP probe failed with"
            " statuscode: 500",
        )
    ]  # fmt: skip
    assert "httpGet port 8080 /ready within 2s" in advice(made, *events)


def test_a_container_that_is_not_ready_yet():
    """Started first, then ready: each by its own probe."""
    of = {"startupProbe": PROBE, "readinessProbe": PROBE}
    starting = pod((runs(started=False, ready=False), of))
    assert found(starting) == [
        ("container c", "not Ready", "its startup probe has not succeeded yet")
    ]
    said = event("Unhealthy", "Readiness probe failed: connection refused", "c")
    unready = pod((runs(started=True, ready=False), of))
    assert found(unready, said) == [
        ("container c", "not Ready", "Readiness probe failed: connection refused")
    ]
    assert "does the program answer there" in advice(unready, said)
    assert found(pod((runs(started=True), of)), said) == []


def test_init_containers_hold_up_the_rest():
    """The first one runs, fails, is through; then the sidecar; then the containers count."""
    waiting = (waits("PodInitializing"), {})
    first = lambda status: pod(  # noqa: E731
        waiting, inits=((status, {}), (waits("PodInitializing", name="side"), SIDECAR))
    )
    assert found(first(runs("one"))) == [("init container one", "running", "it is at work since T")]
    last = {"terminated": {"exitCode": 2, "reason": "Error"}}
    failing = waits("CrashLoopBackOff", name="one", restartCount=1, lastState=last)
    assert found(first(failing)) == [
        (
            "init container one", "CrashLoopBackOff",
            "1 restart(s); the last run ended: exit code 2 (Error)",
        )
    ]  # fmt: skip
    through = ended(0, "Completed", "one")
    pull = waits("ErrImagePull", "manifest unknown", name="side")
    made = pod(waiting, inits=((through, {}), (pull, SIDECAR)))
    assert found(made) == [("sidecar side", "ErrImagePull", "manifest unknown")]
    up = pod(
        (waits("CreateContainerError", "no"), {}),
        inits=((through, {}), (runs("side", started=True), SIDECAR)),
    )
    assert found(up) == [("container c", "CreateContainerError", "no")]


SIDECAR = {"restartPolicy": "Always"}


def test_volumes_that_are_missing():
    missing = event("FailedMount", 'MountVolume.SetUp failed: configmap "settings" not found')
    made = pod((waits("ContainerCreating"), {}))
    assert found(made, missing) == [
        ("volumes", "FailedMount", 'MountVolume.SetUp failed: configmap "settings" not found')
    ]
    assert "create what is missing" in advice(made, missing)
    assert found(pod((runs(), {})), missing) == []  # it is long past


@pytest.mark.parametrize(
    ("reason", "message", "what_to_do"),
    [
        ("FailedMount", "driver name d.example.com not found in the list of registered CSI drivers",
         "does not run on the pod's node"),
        ("FailedMount", "rpc error: code = Internal desc = volume not found", "driver refuses"),
        ("FailedAttachVolume", 'Multi-Attach error for volume "v" Volume is already used by pod(s)',
         "a pod on another node has the volume"),
        ("FailedAttachVolume", "AttachVolume.Attach failed: rpc error: code = Internal",
         "log of its attacher"),
        ("FailedPrepareDynamicResources", "prepare claims: DRA driver d.example.com is not "
         "registered", "does not run on the pod's node"),
        ("FailedPrepareDynamicResources", "NodePrepareResources failed: busy", "look at its log"),
        ("FailedMapVolume", 'MapVolume.SetUpDevice failed for volume "v" : driver name d not found '
         "in the list of registered CSI drivers", "does not run on the pod's node"),
        ("FailedMount", 'MountVolume.SetUp failed for volume "v" : credential bundle is not issued '
         "yet", "waits for its signer"),
        ("FailedMount", 'PodCertificateRequest was permanently denied: reason="R" message="m"',
         "refuses its certificate"),
        ("FailedMount", "combination of signerName and labelSelector matched zero "
         "ClusterTrustBundles", "create a ClusterTrustBundle of this signer"),
    ],
)  # fmt: skip
def test_drivers_that_are_missing_or_refuse(reason, message, what_to_do):
    """[H1, H3]"""
    made = pod((waits("ContainerCreating"), {}))
    said = event(reason, message)
    assert [one[1:] for one in found(made, said)] == [(reason, message)]
    assert what_to_do in advice(made, said)
    assert found(pod((runs(), {})), said) == []


def test_a_running_container_with_a_sick_device():
    """[H2]"""
    health = [{"resourceID": "device-0", "health": "Unhealthy"},
              {"resourceID": "device-1", "health": "Healthy"}]  # fmt: skip
    made = pod((runs(), {}))
    [status] = made["status"]["containerStatuses"]
    status["allocatedResourcesStatus"] = [{"name": "example.com/gpu", "resources": health}]
    [(where, what, why)] = found(made)
    assert (where, what) == (f"container {status['name']}", "device unhealthy")
    assert why == "device-0 of example.com/gpu is Unhealthy"
    assert "log of its driver" in advice(made)


def test_a_sandbox_that_cannot_be_made():
    said = event("FailedCreatePodSandBox", "Failed to create pod sandbox: cni: no plugin")
    made = pod(
        (waits("ContainerCreating"), {}), conditions=[("PodReadyToStartContainers", "False")]
    )
    assert [one[1] for one in found(made, said)] == ["no sandbox"]
    assert "network plugin" in advice(made, said)
    why = "failed to allocate for range 0: no IP addresses available in range set: 10.244.0.2-…"
    full = event("FailedCreatePodSandBox", f'plugin type="sampan" failed (add): {why}')
    assert "every address of the node's range" in advice(made, full)


def test_a_readiness_gate_that_nobody_meets():
    made = pod(
        (runs(), {}), conditions=[("ContainersReady", "True"), ("Ready", "False")],
        spec={"readinessGates": [{"conditionType": "example.com/up"}]},
    )  # fmt: skip
    assert found(made) == [("pod", "not Ready", "readiness gates not met: example.com/up")]


def test_a_node_that_is_not_ready_or_gone_comes_first():
    status = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "m"}
    lost = {"metadata": {"name": "n"}, "status": {"conditions": [status]}}
    assert found(pod((runs(), {})), node=lost) == [("node n", "not Ready", "NodeStatusUnknown: m")]
    assert found(pod((runs(), {})), node=None) == [
        ("node n", "gone", "there is no such node any more")
    ]


@pytest.mark.parametrize(
    ("reason", "message", "what_to_do"),
    [
        ("Evicted", "The node was low on resource: memory.", "request what it really needs"),
        ("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu", "faster"),
        ("DeadlineExceeded", "Pod was active on the node too long", "activeDeadlineSeconds"),
        (
            "UnexpectedAdmissionError",
            "Pod was rejected: Failed to prepare dynamic resources: no driver",
            "whose devices have a driver",
        ),
        (
            "UnexpectedAdmissionError",
            "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate "
            "unhealthy devices example.com/gpu, which is unexpected",
            "fewer healthy devices",
        ),
        (
            "TopologyAffinityError",
            "Pod was rejected: Resources cannot be allocated with Topology locality",
            "no NUMA node of its node",
        ),
        (
            "SMTAlignmentError",
            "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2",
            "as many processors as they have threads",
        ),
        (
            "VolumeAttachmentLimitExceeded",
            "Pod was rejected: Node has reached its volume attachment limit, rejecting pod. …",
            "its node can take no more volumes",
        ),
    ],
)
def test_a_pod_that_has_failed(reason, message, what_to_do):
    made = pod((ended(1), {}), phase="Failed", reason=reason, message=message)
    assert found(made) == [("pod", f"Failed ({reason})", message)]
    assert what_to_do in advice(made)


def test_a_pod_whose_program_failed_and_is_not_started_again():
    made = pod((ended(3), {}), phase="Failed", spec={"restartPolicy": "Never"})
    assert found(made) == [("pod", "Failed", "c: exit code 3 (Error)")]
    assert "restartPolicy is Never" in advice(made)
    assert found(pod(phase="Succeeded"))[0][1] == "Succeeded"


def test_a_pod_that_does_not_go():
    meta = {"deletionTimestamp": "T", "finalizers": ["example.com/hold"]}
    made = pod((runs(), {}), meta=meta)
    assert found(made) == [("pod", "Terminating", "deleted at T, held by example.com/hold")]
