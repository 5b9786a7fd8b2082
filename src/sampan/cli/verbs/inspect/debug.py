"""`debug`: an ephemeral container in a pod, a copy of a pod, or a pod on a node.

Job: generate the container or pod of the chosen profile, send it, attach where asked.
Invariant: flags that do not go together are refused before anything is made or deleted.
"""

import random
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.api.schema.image_names import image_is_valid
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import documents, three_way, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session
from sampan.cli.workloads import debug_profiles

FIXED = ("name", "image", "command", "lifecycle", "volumeDevices")  # not a custom profile's
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LEGACY = (
    "--profile=legacy is deprecated and will be removed in the future. It is recommended to "
    'explicitly specify a profile, for example "--profile=general".'
)
NOT_ROOT = (
    "Warning: Non-root user is configured for the entire target Pod, and some capabilities granted "
    'by debug profile may not work. Please consider using "--custom" with a custom profile that '
    'specifies "securityContext.runAsUser: 0".'
)


def _suffix() -> str:
    return "".join(random.SystemRandom().choice(LETTERS) for _ in range(5))


def run(session: Session, values: Values) -> int:
    dash = values.dash if 0 <= values.dash < len(values.arguments) else len(values.arguments)
    names, command = values.arguments[:dash], values.arguments[dash:]
    session.check_context()
    debug_profiles.check(values.text("profile"))
    custom = _custom_profile(values.text("custom"))
    _ = session.connection
    _check(values, names, command)
    if values["target"] and not values["quiet"]:
        session.print(
            f'Targeting container "{values["target"]}". If you don\'t see processes from this '
            "container it may be because the container runtime doesn't support this feature."
        )
    if values["tty"] and not values["stdin"]:
        raise CliError("-i/--stdin is required for containers with -t/--tty=true")
    if custom and any(custom.get(key) for key in FIXED):
        raise CliError(
            "name, command, image, lifecycle and volume devices are not modifiable via custom "
            "profile"
        )
    if values["profile"] == "legacy":
        session.complain(LEGACY)
    builder = Builder(session)
    builder.typed = True
    builder.files(values).in_namespace().names("pods", names)
    debug = _Debug(session, values, command, custom)
    for info in builder.do().visit():
        if isinstance(info, Info) and (code := debug.visit(info)):
            return code
    return 0


def _custom_profile(path: str) -> Obj | None:
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        why = f"open {path}: {(error.strerror or str(error)).lower()}"
        raise CliError(f"must pass a container spec json file for custom profile: {why}") from error
    from sampan.cli.objects.typed import decode

    try:
        found = documents.first_document(content, path) or {}
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [found]}}
        known: Obj = decode(pod)["spec"]["containers"][0]
    except CliError as error:
        raise CliError(f"{path} does not contain a valid container spec: {error}") from error
    return {key: value for key, value in known.items() if key in found}


def _check(values: Values, names: list[str], command: list[str]) -> None:
    image, set_images = values.text("image"), values["set-image"]
    if values["attach"] and not image and not values["container"]:
        raise CliError(
            "you must specify --container or create a new container using --image in order to "
            "attach."
        )
    _check_copy(values, command)
    if image and not image_is_valid(image):
        raise CliError(f'invalid image name "{image}": invalid reference format')
    if not names and not values["filename"]:
        raise CliError("NAME or filename is required for debug")
    if values["image-pull-policy"] not in ("", "Always", "IfNotPresent", "Never"):
        raise CliError(f"invalid image pull policy: {values['image-pull-policy']}")
    for name, text in set_images.items():
        if not image_is_valid(text):
            raise CliError(
                f'invalid image name "{text}" for container "{name}": invalid reference format'
            )
    if values["target"] and values["copy-to"]:
        raise CliError("--target is incompatible with --copy-to. Use --share-processes instead.")


def _check_copy(values: Values, command: list[str]) -> None:
    image = values.text("image")
    if values["copy-to"]:
        if not image and not values["set-image"] and not command:
            raise CliError("you must specify --image, --set-image or command arguments.")
        if command and not values["container"] and not image:
            raise CliError(
                "you must specify an existing container or a new image when specifying args."
            )
    else:
        for flag in ("replace", "same-node", "set-image"):
            if values[flag]:
                raise CliError(f"--{flag} may only be used with --copy-to.")
        if not image:
            raise CliError("you must specify --image when not using --copy-to.")


class _Debug:
    """One command's debugging, object by object."""

    def __init__(
        self, session: Session, values: Values, command: list[str], custom: Obj | None
    ) -> None:
        self._session, self._values, self._command = session, values, command
        self._custom = custom
        self._env = [{"name": name, "value": text} for name, text in sorted(values["env"].items())]

    def visit(self, info: Info) -> int:
        if info.resource.kind == "Node":
            return self._on_node(info.obj)
        if info.resource.kind != "Pod":
            one = info.resource
            what = f"{one.group}/{one.version}, Kind={one.kind}"
            raise CliError(f'"{what}" not supported by debug')
        if self._values["copy-to"]:
            return self._by_copy(info.obj)
        return self._by_ephemeral_container(info.obj)

    def _container(self, name: str) -> Obj:
        values = self._values
        fields: dict[str, Any] = {
            "name": name, "image": values.text("image"), "env": self._env,
            "imagePullPolicy": values.text("image-pull-policy"), "stdin": values["stdin"],
            "tty": values["tty"], "terminationMessagePolicy": "File",
            "args" if values["arguments-only"] else "command": self._command,
        }  # fmt: skip
        return {key: value for key, value in fields.items() if value}

    def _name_for(self, pod: Obj) -> str:
        if self._values["container"]:
            return self._values.text("container")
        taken = {
            container["name"]
            for kind in debug_profiles.KINDS
            for container in pod["spec"].get(kind) or []
        }
        name = f"debugger-{_suffix()}"
        while name in taken:
            name = f"debugger-{_suffix()}"
        if not self._values["quiet"]:
            self._session.print(f"Defaulting debug container name to {name}.")
        return name

    def _finish(self, pod: Obj, name: str, style: debug_profiles.Style) -> None:
        debug_profiles.apply(self._values.text("profile"), pod, name, style, self._values)
        if self._custom is not None:
            container = debug_profiles.container_of(pod["spec"], name)
            changed = _customised(container, self._custom)
            container.clear()
            container.update(changed)

    def _by_ephemeral_container(self, pod: Obj) -> int:
        session, meta = self._session, pod["metadata"]
        after = copy_of(pod)
        name = self._name_for(pod)
        container = self._container(name)
        if self._values["target"]:
            container["targetContainerName"] = self._values.text("target")
        existing = after["spec"].get("ephemeralContainers") or []
        after["spec"]["ephemeralContainers"] = [*existing, container]
        self._finish(after, name, "ephemeral")
        self._warn(container, pod)
        from sampan.cli.objects.typed import schema

        patch = three_way.two_way_patch(schema(), pod, after)
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        try:
            made = writing.patch(session, f"{path}/ephemeralcontainers", patch, "strategic")
        except ApiError as error:
            if error.reason == "NotFound" and not error.details.get("name"):
                raise CliError(
                    "ephemeral containers are disabled for this cluster (error from server: "
                    f'"{error.message}")'
                ) from error
            raise
        return _attach(session, self._values, made, name)

    def _warn(self, container: Obj, pod: Obj) -> None:
        """Capabilities are of no use to somebody who is not root."""
        user = (pod["spec"].get("securityContext") or {}).get("runAsUser")
        own = container.get("securityContext")
        if not user or own is None or own.get("runAsUser") == 0:
            return
        if own.get("privileged") or (own.get("capabilities") or {}).get("add"):
            self._session.complain(NOT_ROOT)

    def _by_copy(self, pod: Obj) -> int:
        session, values = self._session, self._values
        copied, name = self._copy_of(pod)
        if name:
            self._warn(debug_profiles.container_of(copied["spec"], name), copied)
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        made = session.api.json("POST", path, body=copied)
        if values["replace"]:
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            session.api.json("DELETE", f"{path}/{pod['metadata']['name']}", body=options)
        return _attach(session, values, made, name) if name else 0

    def _copy_of(self, pod: Obj) -> tuple[Obj, str]:
        """The pod to make, and its container to attach to, if there is one."""
        values = self._values
        meta = {
            key: pod["metadata"][key] for key in ("labels", "annotations") if key in pod["metadata"]
        }
        meta |= {"name": values.text("copy-to"), "namespace": pod["metadata"]["namespace"]}
        spec = copy_of(pod)["spec"]
        copied = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        spec.pop("ephemeralContainers", None)
        if values.is_set("share-processes"):
            spec["shareProcessNamespace"] = bool(values["share-processes"])
        if not values["same-node"]:
            spec.pop("nodeName", None)
        images = values["set-image"]
        for container in spec["containers"]:
            image = images.get(container["name"]) or images.get("*")
            container["image"] = image or container["image"]
        name = values.text("container")
        try:
            container = debug_profiles.container_of(spec, name)
        except CliError:
            if not values["image"] and images:
                return copied, ""
            if not values["image"]:
                raise CliError("you must specify image when creating new container") from None
            name = name or self._name_for(copied)
            container = {"name": name, "terminationMessagePolicy": "File"}
            spec["containers"] = [*spec["containers"], container]
        self._fill(container)
        self._finish(copied, name, "copy")
        return copied, name

    def _fill(self, container: Obj) -> None:
        values = self._values
        if self._command and values["arguments-only"]:
            container["args"] = self._command
        elif self._command:
            container["command"] = self._command
            container.pop("args", None)
        for field, value in (
            ("env", self._env),
            ("image", values.text("image")),
            ("imagePullPolicy", values.text("image-pull-policy")),
        ):
            if value:
                container[field] = value
        for field in ("stdin", "tty"):
            container.pop(field, None)
            if values[field]:
                container[field] = True

    def _on_node(self, node: Obj) -> int:
        session, values = self._session, self._values
        node_name = node["metadata"]["name"]
        name = values.text("container") or "debugger"
        pod_name = f"node-debugger-{node_name}-{_suffix()}"
        if not values["quiet"]:
            session.print(
                f"Creating debugging pod {pod_name} with container {name} on node {node_name}."
            )
        meta = {"name": pod_name, "labels": {"app.kubernetes.io/managed-by": "kubectl-debug"}}
        spec = {
            "nodeName": node_name, "restartPolicy": "Never",
            "containers": [self._container(name)], "tolerations": [{"operator": "Exists"}],
        }  # fmt: skip
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        self._finish(pod, name, "node")
        made = session.api.json("POST", f"/api/v1/namespaces/{session.namespace}/pods", body=pod)
        return _attach(session, values, made, name)


def _customised(container: Obj, custom: Obj) -> Obj:
    """With what a file says of it; the name and the image stay those of the flags."""
    from sampan.cli.objects.overrides import overridden_data

    pod: Obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    change = {"spec": {"containers": [{**custom, "name": container["name"]}]}}
    merged: Obj = overridden_data(pod, change, "strategic")["spec"]["containers"][0]
    return merged


def _attach(session: Session, values: Values, pod: Obj, name: str) -> int:
    is_wanted = values["attach"] if values.is_set("attach") else values["stdin"]
    if not is_wanted:
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
    (common_flags.FILES[0], switch("arguments-only", "What is after -- becomes arguments, not the command."),
     switch("attach", "Wait for the container to start, and attach to it."),
     Flag("container", short="c", usage="Container name to use for the debug container."),
     Flag("copy-to", usage="Create a copy of the target pod with this name."),
     Flag("custom", usage="A file, JSON or YAML, with more fields of the container."),
     Flag("env", "map", {}, "Environment variables to set in the container."),
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
     Flag("set-image", "map", {}, "With --copy-to, name=image pairs for changing images."),
     switch("share-processes", "With --copy-to, share processes.", default=True),
     switch("stdin", "Keep stdin open on the container.", short="i"),
     Flag("target", usage="Target the processes in this container."),
     switch("tty", "Allocate a TTY for the debugging container.", short="t")),
)  # fmt: skip
