"""Remedies for the usual failures of pods. Pure.

Job: tables: a reason, and words of its message → advice.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj

# Reason (empty: any), words of which one must occur (none: any), advice. The first that fits.
Advice = Sequence[tuple[str, tuple[str, ...], str]]

PULL: Advice = (
    ("InvalidImageName", (), "the image's name is no valid reference: correct it"),
    ("ErrImageNeverPull", (), "imagePullPolicy is Never and the node does not have the image: load"
     " it there, or change the policy"),
    ("", ("unauthorized", "denied", "authentication", "401", "403"),
     "the registry wants credentials: name a secret with them in imagePullSecrets"),
    ("", ("no such host", "name or service not known", "name resolution"),
     "the registry's name does not resolve on the node: correct the name, or the node's DNS"),
    ("", ("timeout", "refused", "unreachable", "tls", "certificate", "x509"),
     "the node does not reach the registry: look at its network, proxy and trusted certificates"),
    ("", ("not found", "manifest unknown", "does not exist", "404"),
     "there is no such image: correct its name or tag"),
    ("", (), "see whether the image's name is right and the node reaches the registry"),
)  # fmt: skip

FAILED: Advice = (
    ("OOMKilled", (), "it used more memory than its limit allows: raise resources.limits.memory, or"
     " make it use less"),
    ("Evicted", (), "its node ran short: request what it really needs, or make room on the node"),
    ("UnexpectedAdmissionError", ("dynamic resources",),
     "use a node whose devices have a driver, or drop resourceClaims"),
    ("UnexpectedAdmissionError",
     ("number of devices unavailable", "unhealthy devices", "unregistered device"),
     "its node has fewer healthy devices left than it asks for: look at their device plugin there,"
     " then delete the pod; a controller makes another one"),
    ("TopologyAffinityError", (),
     "no NUMA node of its node has all that it asks for: ask for less, choose another node, or"
     " loosen topologyManagerPolicy; then delete it"),
    ("SMTAlignmentError", (), "its node gives whole cores only (full-pcpus-only): ask for as many"
     " processors as they have threads; then delete it"),
    ("VolumeAttachmentLimitExceeded", (), "its node can take no more volumes: delete it, a"
     " controller makes another one elsewhere"),
    ("DeadlineExceeded", (), "it ran longer than activeDeadlineSeconds allows"),
    ("NodeAffinity", (), "the node no longer has the labels that the pod asks for; delete it"),
    ("NodeShutdown", (), "its node was shut down; delete it, a controller makes another one"),
    ("CreateContainerConfigError", ("not found",),
     "create what is missing, or mark the reference optional: true"),
    ("CreateContainerConfigError", ("couldn't find key",),
     "add the key, or mark the reference optional: true"),
    ("CreateContainerConfigError", ("runasnonroot", "run as root"),
     "the image runs as root: set securityContext.runAsUser, or build it with another user"),
    ("FailedMount", ("list of registered csi drivers",),
     "the volume's CSI driver does not run on the pod's node: install it there, or look at its"
     " registrar's log"),
    ("FailedMount", ("rpc error",), "the volume's CSI driver refuses: look at its log on the node"),
    ("FailedMount", ("credential bundle is not issued yet",),
     "its certificate waits for its signer: does one run for the signerName?"
     " `kubectl get podcertificaterequests`"),
    ("FailedMount", ("podcertificaterequest was permanently",),
     "the signer refuses its certificate for good: mend what it says, then delete the pod"),
    ("FailedMount", ("zero clustertrustbundles",),
     "create a ClusterTrustBundle of this signer with these labels, or mark it optional: true"),
    ("FailedMount", ("not found", "couldn't find key", "references non-existent"),
     "create what is missing, or mark it optional: true"),
    ("FailedMount", ("timed out", "timeout"), "the storage does not answer: look at its driver"),
    ("FailedMount", (), "see whether the volume can be mounted on this node"),
    ("FailedAttachVolume", ("multi-attach error",),
     "a pod on another node has the volume: wait until that pod has ended, run both on one node, or"
     " use a volume that several nodes may have (ReadWriteMany)"),
    ("FailedAttachVolume", ("rpc error",),
     "the volume's CSI driver refuses: look at the log of its attacher"),
    ("FailedPrepareDynamicResources", ("is not registered",),
     "the driver of the claimed devices does not run on the pod's node: install it there"),
    ("FailedPrepareDynamicResources", (),
     "the driver of the claimed devices fails: look at its log on the node"),
    ("FailedAttachVolume", (), "the volume is in use elsewhere, or its driver does not answer"),
    ("FailedCreatePodSandBox", ("no ip addresses available",),
     "every address of the node's range of pods is taken: delete pods there, or add a node"),
    ("FailedCreatePodSandBox", ("sampan, which makes the pods' network",),
     "sampan is starting or stopping on the node: it is tried again"),
    ("FailedCreatePodSandBox", ("cni", "network"),
     "the node's network plugin fails: look at its configuration and logs"),
    ("FailedCreatePodSandBox", (), "the container runtime fails: look at its logs on the node"),
    ("", ("executable file not found", "no such file or directory", "exit 127"),
     "the command is not in the image: correct command and args"),
    ("", ("permission denied", "exit 126"), "the command may not be executed: see its permissions"),
    ("", ("exit 137",), "it was killed from outside; was the node short of memory?"),
    ("", ("exit 139",), "it crashed (segmentation fault): a bug in the program"),
    ("", ("exit 143",), "it was asked to end (SIGTERM)"),
    ("Completed", (), "it ends by itself, and restartPolicy starts it again: keep it in the"
     " foreground, or use a Job"),
    ("Error", (), "the program ends with an error of its own"),
    ("", (), "see the message"),
)  # fmt: skip


def advice_for(table: Advice, reason: str, message: str) -> str:
    lower = message.lower()
    for wanted, words, advice in table:
        if wanted in ("", reason) and (not words or any(word in lower for word in words)):
            if reason.startswith("OutOf"):
                return "another pod was faster: delete it, a controller makes another one"
            return advice
    return ""


def ended_why(terminated: Obj) -> str:
    code, reason = terminated.get("exitCode"), terminated.get("reason") or ""
    said = str(terminated.get("message") or "").strip()
    why = f"exit code {code}" + (f" ({reason})" if reason else "")
    if terminated.get("signal"):
        why += f", signal {terminated['signal']}"
    return f"{why}: {said.splitlines()[-1]}" if said else why
