"""`logs`: what containers wrote.

Job: find the pods and containers, ask for their logs, follow several at once where asked.
"""

import select
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import SELECTOR, switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session
from sampan.cli.workloads import pods_of
from sampan.core.patterns import lazy_pattern

EXPECTED = (
    "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n"
    "POD or TYPE/NAME is a required argument for the logs command"
)
RFC3339 = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
MINIMUMS = (
    ("limit-bytes", 0, "--limit-bytes must be greater than 0"),
    ("since", 0, "--since must be greater than 0"),
    ("tail", -1, "--tail must be greater than or equal to -1"),
)
COLOURS = (36, 32, 35, 33, 34, 31)


def run(session: Session, values: Values) -> None:
    _check_words(values)
    session.check_context()
    if values["pod-running-timeout"] <= 0:
        raise CliError(pods_of.NOT_POSITIVE)
    _check_since_time(values)
    found = _found(session, values)
    container = values.arguments[1] if len(values.arguments) == 2 else values.text("container")
    _check(values, container)
    sources = _sources(session, values, found, container)
    if values["follow"] and len(sources) > max(values["max-log-requests"], 1):
        raise CliError(
            f"you are attempting to follow {len(sources)} log streams, but maximum allowed "
            f"concurrency is {values['max-log-requests']}, use --max-log-requests to increase the "
            "limit"
        )
    query = _query(values)
    if values["follow"] and len(sources) > 1:
        _follow(session, values, sources, query)
        return
    for index, (pod, name) in enumerate(sources):
        _copy(
            session, values, pod, {**query, "container": name},
            _prefix(session, values, pod, name, index),
        )  # fmt: skip


def _check_words(values: Values) -> None:
    words = values.arguments
    if not words and not values["selector"]:
        raise UsageError(EXPECTED)
    if len(words) == 1 and values["selector"]:
        raise UsageError("only a selector (-l) or a POD name is allowed")
    if len(words) > 2:
        raise UsageError(EXPECTED)


def _check(values: Values, container: str) -> None:
    if values["since-time"] and values["since"]:
        raise CliError("at most one of `sinceTime` or `sinceSeconds` may be specified")
    if values["all-containers"] and container:
        raise CliError(
            f"--all-containers=true should not be specified with container name {container}"
        )
    if values.is_set("container") and len(values.arguments) == 2:
        raise CliError("only one of -c or an inline [CONTAINER] arg is allowed")
    for flag, minimum, complaint in MINIMUMS:
        if values[flag] < minimum:
            raise CliError(complaint)


def _check_since_time(values: Values) -> None:
    text = values.text("since-time")
    if text and not RFC3339.match(text):
        raise CliError(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        )


def _found(session: Session, values: Values) -> list[Info]:
    """One object, or the pods of a selector."""
    builder = Builder(session).in_namespace().single_type()
    builder.typed = True
    if values.arguments:
        builder.names("pods", values.arguments[:1])
    if values["selector"]:
        builder.types("pods").labels(values.text("selector"))
    try:
        found = builder.do().infos()
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        raise CliError(
            f'error from server (NotFound): {error.message} in namespace "{session.namespace}"'
        ) from error
    if values["selector"] and not found:
        session.complain(f"No resources found in {session.namespace} namespace.")
    return found


def _sources(
    session: Session, values: Values, found: list[Info], container: str
) -> list[tuple[Obj, str]]:
    pods: list[Obj] = []
    for info in found:
        if info.resource.kind == "Pod":
            pods.append(info.obj)
            continue
        seconds, doing = values["pod-running-timeout"], "get the logs from"
        many = pods_of.all_of(session, info, seconds, doing, pods_of.for_logging)
        if len(many) > 1 and not values["all-pods"]:
            name = many[0]["metadata"]["name"]
            session.complain(f"Found {len(many)} pods, using pod/{name}")
        pods += many if values["all-pods"] else many[:1]
    return [(pod, name) for pod in pods for name in _containers(session, values, pod, container)]


def _query(values: Values) -> dict[str, str]:
    query = {}
    for flag, field in (
        ("follow", "follow"), ("previous", "previous"), ("timestamps", "timestamps"),
        ("insecure-skip-tls-verify-backend", "insecureSkipTLSVerifyBackend"),
    ):  # fmt: skip
        if values[flag]:
            query[field] = "true"
    tail = values["tail"]
    if tail == -1 and values["selector"] and not values.is_set("tail"):
        tail = 10
    if tail >= 0:
        query["tailLines"] = str(tail)
    if values["limit-bytes"]:
        query["limitBytes"] = str(values["limit-bytes"])
    if values["since"]:
        query["sinceSeconds"] = str(int(values["since"] + 0.5))
    if values["since-time"]:
        query["sinceTime"] = values.text("since-time")
    return query


def _containers(session: Session, values: Values, pod: Obj, container: str) -> list[str]:
    if values["all-containers"]:
        spec = pod["spec"]
        return [
            item["name"]
            for field in ("initContainers", "containers", "ephemeralContainers")
            for item in spec.get(field) or []
        ]
    name = pods_of.container_of(session, pod, container, quiet=bool(values["all-pods"]))
    if name not in pods_of.container_names(pod):
        raise CliError(f"container {name} is not valid for pod {pod['metadata']['name']}")
    return [name]


def _prefix(session: Session, values: Values, pod: Obj, name: str, index: int) -> bytes:
    if not values["prefix"] and not values["all-pods"]:
        return b""
    text = f"[pod/{pod['metadata']['name']}/{name}] "
    # As kubectl: none. Whoever calls us by our own name gets colours on a terminal.
    is_plain = session.program == "kubectl" or session.io.environment.get("NO_COLOR")
    if session.io.is_terminal() and not is_plain:
        text = f"\x1b[{COLOURS[index % len(COLOURS)]}m{text}\x1b[0m"
    return text.encode()


def _log_path(pod: Obj) -> str:
    meta = pod["metadata"]
    return pods_of.pod_path(meta["namespace"], meta["name"]) + "/log"


def _copy(session: Session, values: Values, pod: Obj, query: dict[str, str], lead: bytes) -> None:
    out = session.io.raw_stdout()
    try:
        stream = session.api.stream(_log_path(pod), query, accept="*/*")
    except ApiError as error:
        if not values["ignore-errors"]:
            raise
        session.print(f"error: {error.message}")
        return
    rest = b""
    try:
        for chunk in stream:
            if not lead:
                out.write(chunk)
            else:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    out.write(lead + line + b"\n")
            out.flush()
        if rest:
            out.write(lead + rest + b"\n")
    finally:
        stream.close()


def _follow(
    session: Session, values: Values, sources: list[tuple[Obj, str]], query: dict[str, str]
) -> None:
    """All at once: whichever has something is shown, line by line."""
    out = session.io.raw_stdout()
    streams: dict[Any, list[Any]] = {}
    for index, (pod, name) in enumerate(sources):
        stream = session.api.stream(_log_path(pod), {**query, "container": name}, accept="*/*")
        lead = _prefix(session, values, pod, name, index)
        streams[stream.socket] = [stream, lead, b""]
    while streams:
        ready = [item for item in streams if streams[item][0].has_unread()]
        for socket in ready or select.select(list(streams), [], [])[0]:
            entry = streams[socket]
            chunk = entry[0].next_chunk()
            if not chunk:
                entry[0].close()
                del streams[socket]
                continue
            *lines, entry[2] = (entry[2] + chunk).split(b"\n")
            for line in lines:
                out.write(entry[1] + line + b"\n")
            out.flush()


LOGS = Command(
    "logs",
    "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] [options]",
    "Print the logs for a container in a pod or specified resource.",
    run,
    (
        SELECTOR,
        switch("all-containers", "Get all containers' logs in the pod(s)."),
        switch("all-pods", "Get logs from all pod(s). Sets prefix to true."),
        Flag("container", short="c", usage="Print the logs of this container."),
        switch("follow", "Specify if the logs should be streamed.", short="f"),
        switch("ignore-errors", "Go on where one of several pods cannot be read."),
        switch("insecure-skip-tls-verify-backend", "Do not check the kubelet's certificate."),
        Flag("limit-bytes", "int64", 0, "Maximum bytes of logs to return."),
        Flag("max-log-requests", "int", 5, "How many logs to follow at once, at most."),
        pods_of.pod_timeout(20.0),
        switch("prefix", "Prefix each log line with the pod and container name."),
        switch("previous", "The logs of the container's last instance.", short="p"),
        Flag("since", "duration", 0.0, "Only return logs newer than this, like 5s, 2m, or 3h."),
        Flag("since-time", usage="Only return logs after a specific date (RFC3339)."),
        Flag("tail", "int64", -1, "Lines of recent log file to display."),
        switch("timestamps", "Include timestamps on each line in the log output."),
    ),
)
