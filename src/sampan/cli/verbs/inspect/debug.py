"""`debug`: an ephemeral container in a pod, a copy of a pod, or a pod on a node.

Job: generate the container or pod of the chosen profile, send it, attach where asked.
"""

import random

from sampan.api.objects import Obj, copy_of
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection, writing
from sampan.cli.session import Session

PROFILES = ("legacy", "general", "baseline", "netadmin", "restricted", "sysadmin", "auto")
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
    if not values.arguments:
        raise CliError("NAME or TYPE/NAME is required for debug")
    profile = values.text("profile")
    if profile not in PROFILES:
        raise CliError(f"unknown profile: {profile}")
    if profile == "legacy":
        session.complain(LEGACY)
    names = values.arguments if values.dash < 0 else values.arguments[: values.dash]
    word = names[0]
    if "/" in word:
        target = selection.targets(session, [word])[0]
    else:
        target = selection.Target(session.discovery.find("pods"), word)
    obj = session.api.json("GET", target.resource.path(session.namespace, target.name))
    if target.resource.kind == "Node":
        return _on_node(session, values, obj)
    if target.resource.kind != "Pod":
        raise CliError(f'"{target.resource.plural}" not supported by debug')
    if values["copy-to"]:
        return _copy(session, values, obj)
    return _ephemeral(session, values, obj)


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
    security = {
        "general": {"capabilities": {"add": ["SYS_PTRACE"]}},
        "netadmin": {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
        "sysadmin": {"privileged": True},
        "restricted": {
            "allowPrivilegeEscalation": False, "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
    }.get(values.text("profile"))  # fmt: skip
    if security:
        container["securityContext"] = security
    return {key: value for key, value in container.items() if value not in (None, False)}


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
    copy = copy_of(pod)
    spec = copy["spec"]
    meta = {"name": values.text("copy-to"), "namespace": pod["metadata"]["namespace"]}
    annotations = pod["metadata"].get("annotations")
    if annotations:
        meta["annotations"] = annotations
    if values["keep-labels"] and pod["metadata"].get("labels"):
        meta["labels"] = pod["metadata"]["labels"]
    if not values["same-node"]:
        spec.pop("nodeName", None)
    spec.pop("ephemeralContainers", None)
    if values["share-processes"]:
        spec["shareProcessNamespace"] = True
    for pair in values["set-image"].split(",") if values["set-image"] else ():
        name, _, image = pair.partition("=")
        for container in spec["containers"]:
            if name in ("*", container["name"]):
                container["image"] = image
    added = ""
    if values["image"]:
        container = _container(session, values)
        added = container["name"]
        others = [item for item in spec["containers"] if item["name"] != added]
        spec["containers"] = [*others, container]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    if values["replace"]:
        session.api.json(
            "DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{pod['metadata']['name']}"
        )
    made = session.api.json("POST", f"/api/v1/namespaces/{meta['namespace']}/pods", body=body)
    return _attach(session, values, made, added or made["spec"]["containers"][0]["name"])


def _on_node(session: Session, values: Values, node: Obj) -> int:
    name = node["metadata"]["name"]
    pod_name = f"node-debugger-{name}-{_suffix()}"
    container = _container_on_node(session, values)
    body = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod_name},
        "spec": {
            "nodeName": name, "restartPolicy": "Never", "hostNetwork": True, "hostPID": True,
            "hostIPC": True, "containers": [container], "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "host-root", "hostPath": {"path": "/"}}],
        },
    }  # fmt: skip
    if not values["quiet"]:
        session.print(
            f"Creating debugging pod {pod_name} with container {container['name']} on node {name}."
        )
    made = session.api.json("POST", f"/api/v1/namespaces/{session.namespace}/pods", body=body)
    return _attach(session, values, made, container["name"])


def _container_on_node(session: Session, values: Values) -> Obj:
    if not values["container"]:
        values._values["container"] = "debugger"
    container = _container(session, values)
    container["volumeMounts"] = [{"name": "host-root", "mountPath": "/host"}]
    return container


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
    (switch("arguments-only", "What is after -- becomes arguments, not the command."),
     switch("attach", "Wait for the container to start, and attach to it."),
     Flag("container", short="c", usage="Container name to use for the debug container."),
     Flag("copy-to", usage="Create a copy of the target pod with this name."),
     Flag("env", "array", [], "Environment variables to set in the container."),
     Flag("image", usage="Container image to use for the debug container."),
     Flag("image-pull-policy", usage="The image pull policy for the container."),
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
