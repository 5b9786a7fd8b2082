"""Defaults of one container: pull policy, termination message, ports, probes, hooks, environment.

Job: fill in a container of any sort (normal, init, ephemeral), as upstream does.
Invariant: the pull policy depends on the image's tag alone.
"""

from sampan.api.defaults.fill import round_amounts
from sampan.api.objects import Obj
from sampan.api.schema.image_names import untagged_image_is_valid

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def default_container(container: Obj) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy_of(container.get("image") or "")
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    else:
        round_amounts(resources.get("requests"), resources.get("limits"))
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        if variable.get("valueFrom"):
            _default_source(variable["valueFrom"])
    for kind in _PROBES:
        if container.get(kind) is not None:
            _default_probe(container[kind])
    if container.get("lifecycle"):
        _default_lifecycle(container["lifecycle"])


def _default_lifecycle(lifecycle: Obj) -> None:
    for hook in ("postStart", "preStop"):
        handler = lifecycle.get(hook)
        if handler:
            _default_http(handler.get("httpGet"))


def pull_policy_of(image: str) -> str:
    """Always for `:latest` and for an image with neither tag nor digest; else IfNotPresent, also
    for what is no image's name."""
    if not image or "@" in image:
        tag = ":latest@" in image
        return "Always" if tag else "IfNotPresent"
    last = image.rpartition("/")[2]
    _, colon, tag_text = last.partition(":")
    if not colon:
        return "Always" if untagged_image_is_valid(image) else "IfNotPresent"
    return "Always" if tag_text == "latest" else "IfNotPresent"


def default_field_ref(reference: Obj | None) -> None:
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def default_resource_ref(reference: Obj | None) -> None:
    """An unset divisor is a quantity of zero, and is shown."""
    if reference is not None and reference.get("divisor") is None:
        reference["divisor"] = "0"


def _default_source(source: Obj) -> None:
    default_field_ref(source.get("fieldRef"))
    default_resource_ref(source.get("resourceFieldRef"))
    file_key = source.get("fileKeyRef")
    if file_key is not None and file_key.get("optional") is None:
        file_key["optional"] = False


def _default_probe(probe: Obj) -> None:
    if not probe.get("timeoutSeconds"):
        probe["timeoutSeconds"] = 1
    if not probe.get("periodSeconds"):
        probe["periodSeconds"] = 10
    if not probe.get("successThreshold"):
        probe["successThreshold"] = 1
    if not probe.get("failureThreshold"):
        probe["failureThreshold"] = 3
    _default_http(probe.get("httpGet"))
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(action: Obj | None) -> None:
    if action is None:
        return
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"
