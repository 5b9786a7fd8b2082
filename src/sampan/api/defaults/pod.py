"""Defaults of pods: those of any pod template, and the few that only a pod itself gets.

Job: fill in a Pod or a pod template, as upstream does.
Invariant: requests come from limits in pods only; a template keeps what its author wrote.
"""

from sampan.api import features
from sampan.api.defaults.containers import default_container
from sampan.api.defaults.fill import round_amounts
from sampan.api.defaults.pod_level import default_early
from sampan.api.defaults.volumes import default_volume
from sampan.api.objects import Obj


def default_pod(pod: Obj) -> None:
    spec = pod.get("spec")
    if spec is None:
        spec = pod["spec"] = {}
    default_pod_spec(spec)
    for container in spec.get("containers") or ():
        _requests_from_limits(container)
    for container in spec.get("initContainers") or ():
        _requests_from_limits(container)
    if spec.get("resources") and not features.enabled("PodLevelResourcesFixDefaulting"):
        default_early(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _default_host_ports(spec)


def default_pod_template(template: Obj) -> None:
    """The template of a Deployment, Job and so on."""
    spec = template.get("spec")
    if spec is None:
        spec = template["spec"] = {}
    default_pod_spec(spec)


def default_pod_spec(spec: Obj) -> None:
    for container in spec.get("containers") or ():
        default_container(container)
    for container in spec.get("initContainers") or ():
        default_container(container)
    for container in spec.get("ephemeralContainers") or ():
        default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    round_amounts(spec.get("overhead"))
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    _mirror_service_account(spec)


def _mirror_service_account(spec: Obj) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`: both are shown, and agree."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _requests_from_limits(container: Obj) -> None:
    resources: Obj = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return
    requests = resources.get("requests")
    if not requests:
        resources["requests"] = dict(limits)
        return
    for name, amount in limits.items():
        requests.setdefault(name, amount)


def _default_host_ports(spec: Obj) -> None:
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
