"""`run`: one pod from the command line (C1, C2).

Job: check the arguments, generate the pod (and its service), send it, attach to it where asked.
Invariant: what is wrong with the arguments is said before anything is sent.
"""

from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, name_of
from sampan.api.schema.image_names import image_is_valid
from sampan.cli import common_flags
from sampan.cli.client_config import NoContext
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values, decimal
from sampan.cli.objects import writing
from sampan.cli.output import FORMATS, PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
# What a node of sampan has from its start: nothing is pulled for a first pod.
HELLO, HELLO_IMAGE = "hello", "localhost/sampan/hello:1"
ENV_NAME = lazy_pattern(r"[-._a-zA-Z][-._a-zA-Z0-9]*$")
POD_PATH = "/api/v1/namespaces/{}/pods"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for, checked."""

    name: str
    arguments: tuple[str, ...]
    restart: str
    is_attached: bool
    strategy: str


def run(session: Session, values: Values) -> int | None:
    _fill_image(session, values)
    strategy = common_flags.dry_run(session, values)
    common_flags.propagation(session, values)
    try:
        _ = session.namespace
    except NoContext as error:
        raise CliError(f'context "{error.name}" does not exist') from error
    printer = ObjectPrinter(values, typed=True, formats=FORMATS)
    request = _check(values, strategy)
    pod = _overridden(session, values, generated_pod(request, values))
    service = _service(request, values, pod) if values["expose"] else None
    if session.namespace_is_given:
        meta = pod.get("metadata") or {}
        pod = {**pod, "metadata": {"namespace": session.namespace, **meta}}
    pod = writing.recorded(session, values, pod)
    pod = _send(session, values, pod, strategy)
    if service is not None:
        if session.namespace_is_given:
            service["metadata"]["namespace"] = session.namespace
        service = _send(session, values, service, strategy)
        _show(session, printer, service, strategy)
        if printer.format == "yaml":
            session.print("---")
    if request.is_attached:
        return _attach(session, values, pod, request)
    _show(session, printer, pod, strategy)
    return None


def _check(values: Values, strategy: str) -> Request:
    if not values.arguments:
        raise UsageError("NAME is required for run")
    if values["pod-running-timeout"] <= 0:
        raise UsageError("--pod-running-timeout must be higher than zero")
    _check_image(values.text("image"))
    if values["tty"] and not values["stdin"]:
        raise UsageError("-i/--stdin is required for containers with -t/--tty=true")
    if values["expose"] and not values["port"]:
        raise UsageError("--port must be set when exposing a service")
    restart = _restart_policy(values)
    is_attached = values["attach"] or (values["stdin"] and not values.is_set("attach"))
    if values["rm"] and not is_attached:
        raise UsageError("--rm should only be used for attached containers")
    if is_attached and strategy != "none":
        raise UsageError(
            "--dry-run=[server|client] can't be used with attached containers options "
            "(--attach, --stdin, or --tty)"
        )
    _check_pull_policy(values.text("image-pull-policy"))
    name, *arguments = values.arguments
    if not name:
        raise CliError("Parameter: name is required")
    return Request(name, tuple(arguments), restart, bool(is_attached), strategy)


def _fill_image(session: Session, values: Values) -> None:
    """`sampan run hello`, against a sampan: an image that its nodes have. Not as kubectl."""
    if values.is_set("image"):
        return
    is_hello = session.program == "sampan" and values.arguments[:1] == [HELLO]
    if is_hello and "sampan" in str(session.api.json("GET", "/version").get("gitVersion")):
        values.put(values.flags["image"], HELLO_IMAGE)
        return
    raise CliError('required flag(s) "image" not set')


def _check_image(image: str) -> None:
    if not image:
        raise CliError("--image is required")
    if not image_is_valid(image):
        raise CliError(f'Invalid image name "{image}": invalid reference format')


def _restart_policy(values: Values) -> str:
    policy = values.text("restart") or "Always"
    if policy not in RESTART_POLICIES:
        raise UsageError(f"invalid restart policy: {policy}")
    return policy


def _check_pull_policy(policy: str) -> None:
    if policy and policy not in PULL_POLICIES:
        raise UsageError(f"invalid image pull policy: {policy}")


def generated_pod(request: Request, values: Values) -> Obj:
    """The pod of the arguments, before overrides."""
    container: Obj = {"name": request.name, "image": values.text("image")}
    if request.arguments:
        container["command" if values["command"] else "args"] = list(request.arguments)
    env = _environment(values["env"])
    annotations = _annotations(values["annotations"])
    labels = _labels(values.text("labels"), request.name)
    if env:
        container["env"] = env
    if values["image-pull-policy"]:
        container["imagePullPolicy"] = values["image-pull-policy"]
    if values["stdin"]:
        container["stdin"] = True
        if not values["leave-stdin-open"]:
            container["stdinOnce"] = True
    if values["tty"]:
        container["tty"] = True
    if values["port"]:
        container["ports"] = [{"containerPort": _port(values.text("port"))}]
    if values["privileged"]:
        container["securityContext"] = {"privileged": True}
    container["resources"] = {}
    metadata: Obj = {"name": request.name, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [container],
            "restartPolicy": request.restart,
            "dnsPolicy": "ClusterFirst",
        },
        "status": {},
    }


def _port(text: str) -> int:
    try:
        return decimal(text)
    except ValueError as error:
        raise CliError(str(error)) from error


def _environment(pairs: list[str]) -> list[Obj]:
    env = []
    for pair in pairs:
        if not pair:
            continue
        name, equals, value = pair.partition("=")
        if not equals or not ENV_NAME.match(name):
            raise CliError(f"invalid env: {pair}")
        env.append({"name": name, **({"value": value} if value else {})})
    return env


def _annotations(pairs: list[str]) -> dict[str, str]:
    annotations = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise CliError(f"invalid annotations format: {pair}")
        annotations[key] = value
    return annotations


def _labels(text: str, name: str) -> dict[str, str]:
    return parsed_labels(text) if text else {"run": name}


def parsed_labels(text: str) -> dict[str, str]:
    labels = {}
    for pair in text.split(","):
        parts = pair.split("=")
        if len(parts) != 2:
            raise CliError(f"unexpected label spec: {pair}")
        if not parts[0]:
            raise CliError("unexpected empty label key")
        labels[parts[0]] = parts[1]
    return labels


def _overridden(session: Session, values: Values, pod: Obj) -> Obj:
    text = values.text("overrides")
    if not text:
        return pod
    from sampan.cli.objects.overrides import overridden

    return overridden(pod, text, values.text("override-type"))


def _service(request: Request, values: Values, pod: Obj) -> Obj:
    port = _port(values.text("port"))
    metadata: Obj = {"name": request.name}
    labels = parsed_labels(values.text("labels")) if values["labels"] else {}
    if labels:
        metadata["labels"] = labels
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "ports": [{"protocol": "TCP", "port": port, "targetPort": port}],
            "selector": labels or {"run": request.name},
        },
        "status": {"loadBalancer": {}},
    }


def _send(session: Session, values: Values, obj: Obj, strategy: str) -> Obj:
    if strategy == "client":
        return obj
    if values["save-config"]:
        plain = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "namespace"}}
        obj = writing.annotate(obj, {writing.LAST_APPLIED: writing.last_applied(plain, typed=True)})
    resource = session.discovery.of_kind(obj["apiVersion"], obj["kind"])
    if resource is None:
        raise CliError(f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"')
    query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
    namespace = (obj.get("metadata") or {}).get("namespace") or session.namespace
    return writing.create(session, resource, namespace, obj, query)


def _show(session: Session, printer: ObjectPrinter, obj: Obj, strategy: Any) -> None:
    label = f"{_kind_label(obj)}/{name_of(obj)}"
    if printer.format:
        session.write(printer.text(obj, label))
    else:
        session.print(f"{label} created{common_flags.suffix(strategy)}")


def _kind_label(obj: Obj) -> str:
    group = obj["apiVersion"].rpartition("/")[0]
    kind = str(obj["kind"]).lower()
    return f"{kind}.{group}" if group else kind


def _attach(session: Session, values: Values, pod: Obj, request: Request) -> int:
    from sampan.cli.workloads import attachment

    meta = pod["metadata"]
    code = 0
    try:
        code = attachment.run_attached(session, values, pod, restart=request.restart)
    finally:
        if values["rm"]:
            _remove(session, values, meta["namespace"], meta["name"])
    return code


def _remove(session: Session, values: Values, namespace: str, name: str) -> None:
    body: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if values["grace-period"] >= 0:
        body["gracePeriodSeconds"] = values["grace-period"]
    try:
        session.api.json("DELETE", POD_PATH.format(namespace) + f"/{name}", body=body)
    except ApiError as error:
        if error.reason != "NotFound":
            raise
    if not values["quiet"]:
        session.print(f'pod "{name}" deleted from {namespace} namespace')


RUN = Command(
    "run",
    'run NAME --image=image [--env="key=value"] [--port=port] [--dry-run=server|client] '
    "[--overrides=inline-json] [--command] -- [COMMAND] [args...] [options]",
    "Create and run a particular image in a pod.",
    run,
    (
        *PRINT_FLAGS,
        common_flags.DRY_RUN,
        common_flags.SAVE_CONFIG,
        common_flags.RECORD,
        *common_flags.FILES,
        common_flags.field_manager("kubectl-run"),
        Flag("annotations", "array", [], "Annotations to apply to the pod (key=value)."),
        switch("attach", "Wait for the pod to start, and attach to it."),
        Flag("cascade", default="background", bare="background",
             usage='Must be "background", "orphan", or "foreground".'),
        switch("command", "Use the arguments as the container's command, not as its args."),
        Flag("env", "array", [], "Environment variables to set in the container (key=value)."),
        switch("expose", "Create a ClusterIP service for the pod. Requires --port."),
        switch("force", "Remove the resource at once, with --grace-period=0."),
        Flag("grace-period", "int", -1, "Seconds that the pod gets to end by itself."),
        Flag("image", usage="The image for the container to run."),
        Flag("image-pull-policy", usage="The image pull policy for the container."),
        Flag("labels", short="l", usage="Comma separated labels to apply to the pod."),
        switch("leave-stdin-open", "Leave stdin open after the first attach completes."),
        Flag("override-type", default="merge", usage="How to override: json, merge, or strategic."),
        Flag("overrides", usage="An inline JSON override for the generated object."),
        Flag("pod-running-timeout", "duration", 60.0, "How long to wait for the pod to run."),
        Flag("port", usage="The port that this container exposes."),
        switch("privileged", "Run the container in privileged mode."),
        switch("quiet", "Suppress prompt messages.", short="q"),
        Flag("restart", default="Always", usage="The restart policy: Always, OnFailure, Never."),
        switch("rm", "Delete the pod after it exits."),
        switch("stdin", "Keep stdin open on the container.", short="i"),
        Flag("timeout", "duration", 0.0, "How long to wait before giving up on a delete."),
        switch("tty", "Allocate a TTY for the container.", short="t"),
        switch("wait", "Wait for resources to be gone before returning."),
    ),
)  # fmt: skip
