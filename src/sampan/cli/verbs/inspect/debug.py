"""`debug`: an ephemeral container in a pod, a copy of a pod, or a pod on a node.

Job: generate the container or pod of the chosen profile, send it, attach where asked.
"""

import random

from sampan.api.objects import Obj, copy_of
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import documents, manifests, selection, writing
from sampan.cli.objects.infos import Info, info_of
from sampan.cli.session import Session

PROFILES = ("legacy", "general", "baseline", "netadmin", "restricted", "sysadmin", "auto")
SECURITY: dict[str, Obj] = {
    "general": {"capabilities": {"add": ["SYS_PTRACE"]}},
    "netadmin": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
    "sysadmin": {"privileged": True},
    "restricted": {
        "allowPrivilegeEscalation": False, "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    },
}  # fmt: skip
HOST_NAMESPACES = ("legacy", "general", "netadmin", "sysadmin", "auto")
HOST_FILES = ("legacy", "general", "sysadmin", "auto")
FIXED = ("name", "image", "command", "lifecycle", "volumeDevices")  # not a custom profile's
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LEGACY = (
    "--profile=legacy is deprecated and will be removed in the future. It is recommended to "
    'explicitly specify a profile, for example "--profile=general".'
)


def _suffix() -> str:
    return "".join(random.SystemRandom().choice(LETTERS) for _ in range(5))


def run(session: Session, values: Values) -> int:
    if not values["image"] and not values["copy-to"]:
        raise CliError("you must specify --image when not using --copy-to.")
    has_file = manifests.has_files(values)
    if not values.arguments and not has_file:
        raise CliError("NAME or TYPE/NAME is required for debug")
    profile = values.text("profile")
    if profile not in PROFILES:
        raise CliError(f"unknown profile: {profile}")
    if profile == "legacy":
        session.complain(LEGACY)
    for info in _targets(session, values):
        code = _debug(session, values, info)
        if code:
            return code
    return 0


def _debug(session: Session, values: Values, info: Info) -> int:
    if info.resource.kind == "Node":
        return _on_node(session, values, info.obj)
    if info.resource.kind != "Pod":
        raise CliError(f'"{info.resource.plural}" not supported by debug')
    if values["copy-to"]:
        return _copy(session, values, info.obj)
    return _ephemeral(session, values, info.obj)


def _targets(session: Session, values: Values) -> list[Info]:
    if manifests.has_files(values):
        found = list(selection.live(session, values, []))
        failures = [item for item in found if isinstance(item, Exception)]
        if failures:
            raise Several(failures)
        return [item for item in found if not isinstance(item, Exception)]
    names = values.arguments if values.dash < 0 else values.arguments[: values.dash]
    word = names[0]
    if "/" in word:
        target = selection.targets(session, [word])[0]
    else:
        target = selection.Target(session.discovery.find("pods"), word)
    obj = session.api.json("GET", target.resource.path(session.namespace, target.name))
    return [info_of(target.resource, obj, session.namespace)]


def _container(session: Session, values: Values) -> Obj:
    name = values.text("container")
    if not name:
        name = f"debugger-{_suffix()}"
        if not values["quiet"]:
            session.print(f"Defaulting debug container name to {name}.")
    command = [] if values.dash < 0 else values.arguments[values.dash :]
    container: Obj = {
        "name": name, "image": values.text("image"), "imagePullPolicy": values["image-pull-policy"] or None,
        "stdin": bool(values["stdin"]), "tty": bool(values["tty"]),
        "terminationMessagePolicy": "File",
    }  # fmt: skip
    if command:
        container["args" if values["arguments-only"] else "command"] = command
    if values["env"]:
        container["env"] = [
            {"name": pair.partition("=")[0], "value": pair.partition("=")[2]}
            for pair in values["env"]
        ]
    security = SECURITY.get(values.text("profile"))
    if security:
        container["securityContext"] = security
    container = {key: value for key, value in container.items() if value not in (None, False)}
    return _customised(container, values.text("custom"))


def _customised(container: Obj, path: str) -> Obj:
    """With what a file says of it; the name and the image stay those of the flags."""
    if not path:
        return container
    from sampan.cli.objects.overrides import overridden_data

    with open(path, "rb") as file:
        custom = documents.first_document(file.read(), path) or {}
    fixed = [key for key in FIXED if isinstance(custom, dict) and custom.get(key)]
    if not isinstance(custom, dict) or fixed:
        why = f"{fixed[0]} can not be changed" if fixed else "it is no container"
        raise CliError(f"error while applying the custom profile {path}: {why}")
    pod: Obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    change = {"spec": {"containers": [{**custom, "name": container["name"]}]}}
    merged: Obj = overridden_data(pod, change, "strategic")["spec"]["containers"][0]
    return merged


def _ephemeral(session: Session, values: Values, pod: Obj) -> int:
    container = _container(session, values)
    if values["target"]:
        if not values["quiet"]:
            session.print(
                f'Targeting container "{values["target"]}". If you don\'t see processes from this '
                "container it may be because the container runtime doesn't support this feature."
            )
        container["targetContainerName"] = values["target"]
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    patch = {"spec": {"ephemeralContainers": [container]}}
    pod = writing.patch(session, f"{path}/ephemeralcontainers", patch, "strategic")
    return _attach(session, values, pod, container["name"])


def _copy(session: Session, values: Values, pod: Obj) -> int:
    spec = _copied_spec(values, pod)
    added = ""
    if values["image"]:
        container = _container(session, values)
        added = container["name"]
        others = [item for item in spec["containers"] if item["name"] != added]
        spec["containers"] = [*others, container]
    meta = _copied_metadata(values, pod["metadata"])
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods"
    if values["replace"]:
        session.api.json("DELETE", f"{path}/{pod['metadata']['name']}")
    copy = session.api.json("POST", path, body=body)
    return _attach(session, values, copy, added or copy["spec"]["containers"][0]["name"])


def _copied_metadata(values: Values, meta: Obj) -> Obj:
    kept = {
        "annotations": values.text("profile") == "legacy" or values["keep-annotations"],
        "labels": values["keep-labels"],
    }
    more = {field: meta[field] for field in kept if kept[field] and meta.get(field)}
    return {"name": values.text("copy-to"), "namespace": meta["namespace"], **more}


def _copied_spec(values: Values, pod: Obj) -> Obj:
    spec: Obj = copy_of(pod)["spec"]
    is_legacy = values.text("profile") == "legacy"
    if not values["same-node"]:
        spec.pop("nodeName", None)
    spec.pop("ephemeralContainers", None)
    if not is_legacy:
        _lighten(spec, values)
    if values["share-processes"] and (not is_legacy or values.is_set("share-processes")):
        spec["shareProcessNamespace"] = True
    for pair in values["set-image"].split(",") if values["set-image"] else ():
        name, _, image = pair.partition("=")
        for container in spec["containers"]:
            if name in ("*", container["name"]):
                container["image"] = image
    return spec


def _lighten(spec: Obj, values: Values) -> None:
    """A copy is looked at, not served from: its probes go, unless they are to be kept."""
    if not values["keep-init-containers"]:
        spec.pop("initContainers", None)
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        for kind in ("liveness", "readiness", "startup"):
            if not values[f"keep-{kind}"]:
                container.pop(f"{kind}Probe", None)


def _on_node(session: Session, values: Values, node: Obj) -> int:
    name, profile = node["metadata"]["name"], values.text("profile")
    pod_name = f"node-debugger-{name}-{_suffix()}"
    if not values["container"]:
        values._values["container"] = "debugger"
    container = _container(session, values)
    spec: Obj = {
        "nodeName": name, "restartPolicy": "Never", "containers": [container],
        "tolerations": [{"operator": "Exists"}],
    }  # fmt: skip
    if profile == "general":
        container.pop("securityContext", None)
    if profile in HOST_NAMESPACES:
        spec |= {"hostNetwork": True, "hostPID": True, "hostIPC": True}
    if profile in HOST_FILES:
        container["volumeMounts"] = [{"name": "host-root", "mountPath": "/host"}]
        spec["volumes"] = [{"name": "host-root", "hostPath": {"path": "/"}}]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod_name}, "spec": spec}
    if not values["quiet"]:
        session.print(
            f"Creating debugging pod {pod_name} with container {container['name']} on node {name}."
        )
    made = session.api.json("POST", f"/api/v1/namespaces/{session.namespace}/pods", body=body)
    return _attach(session, values, made, container["name"])


def _attach(session: Session, values: Values, pod: Obj, name: str) -> int:
    if not values["stdin"] and not values["attach"]:
        return 0
    from sampan.cli.objects import waiting
    from sampan.cli.workloads import streams

    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def is_running(obj: Obj | None) -> bool:
        status = (obj or {}).get("status") or {}
        states = [
            *(status.get("containerStatuses") or []),
            *(status.get("ephemeralContainerStatuses") or []),
        ]
        own = next((state for state in states if state["name"] == name), None)
        return own is not None and "waiting" not in (own.get("state") or {"waiting": {}})

    if not waiting.until(session, path, is_running, 60.0):
        raise CliError("timed out waiting for the condition")
    wanted = streams.Wanted(bool(values["stdin"]), True, True, bool(values["tty"]))
    return streams.run(session, f"{path}/attach", [("container", name)], wanted)


DEBUG = Command(
    "debug", "debug (POD | TYPE[[.VERSION].GROUP]/NAME) [ -- COMMAND [args...] ] [options]",
    "Debug cluster resources using interactive debugging containers.", run,
    (*common_flags.FILES, switch("arguments-only", "What is after -- becomes arguments, not the command."),
     switch("attach", "Wait for the container to start, and attach to it."),
     Flag("container", short="c", usage="Container name to use for the debug container."),
     Flag("copy-to", usage="Create a copy of the target pod with this name."),
     Flag("custom", usage="A file, JSON or YAML, with more fields of the container."),
     Flag("env", "array", [], "Environment variables to set in the container."),
     Flag("image", usage="Container image to use for the debug container."),
     Flag("image-pull-policy", usage="The image pull policy for the container."),
     switch("keep-annotations", "Keep the original pod annotations (with --copy-to)."),
     switch("keep-init-containers", "Run the init containers of the pod (with --copy-to).", default=True),
     switch("keep-liveness", "Keep the original pod liveness probes (with --copy-to)."),
     switch("keep-readiness", "Keep the original pod readiness probes (with --copy-to)."),
     switch("keep-startup", "Keep the original startup probes (with --copy-to)."),
     switch("keep-labels", "Keep the original pod labels (with --copy-to)."),
     Flag("profile", default="legacy", usage="legacy, general, baseline, netadmin, restricted, sysadmin."),
     switch("quiet", "Suppress informational messages.", short="q"),
     switch("replace", "With --copy-to, delete the original pod."),
     switch("same-node", "With --copy-to, schedule the copy on the same node."),
     Flag("set-image", usage="With --copy-to, name=image pairs for changing images."),
     switch("share-processes", "With --copy-to, share processes.", default=True),
     switch("stdin", "Keep stdin open on the container.", short="i"),
     Flag("target", usage="Target the processes in this container."),
     switch("tty", "Allocate a TTY for the debugging container.", short="t")),
)  # fmt: skip
