"""`logs`: what containers wrote.

Job: find the pods and containers, ask for their logs, follow several at once where asked.
"""

import re
import select
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import SELECTOR, switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import selection
from sampan.cli.session import Session
from sampan.cli.workloads import pods_of

EXPECTED = (
    "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n"
    "POD or TYPE/NAME is a required argument for the logs command"
)
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
MINIMUMS = (
    ("tail", -1, "--tail must be greater than or equal to -1"),
    ("limit-bytes", 0, "--limit-bytes must be greater than 0"),
    ("since", 0, "--since must be greater than 0"),
)
COLOURS = (36, 32, 35, 33, 34, 31)


def run(session: Session, values: Values) -> None:
    _check(values)
    query = _query(values)
    sources = [
        (pod, name) for pod in _pods(session, values) for name in _containers(session, values, pod)
    ]
    if values["follow"] and len(sources) > values["max-log-requests"]:
        raise CliError(
            f"you are attempting to follow {len(sources)} log streams, but maximum allowed "
            f"concurrency is {values['max-log-requests']}, use --max-log-requests to increase the "
            "limit"
        )
    many = len(sources) > 1
    prefix = bool(values["prefix"]) or (values["all-pods"] and not values.is_set("prefix"))
    if values["follow"] and many:
        _follow(session, values, sources, query)
        return
    for index, (pod, name) in enumerate(sources):
        lead = _prefix(session, pod, name, index) if prefix else b""
        _copy(session, values, pod, {**query, "container": name}, lead)


def _check(values: Values) -> None:
    _check_words(values)
    _take_container(values)
    for flag, minimum, complaint in MINIMUMS:
        if values[flag] < minimum:
            raise CliError(complaint)
    _check_since_time(values)


def _check_words(values: Values) -> None:
    words = values.arguments
    if not words and not values["selector"]:
        raise UsageError(EXPECTED)
    if words and values["selector"]:
        raise UsageError("only a selector (-l) or a POD name is allowed")
    if len(words) > 2:
        raise UsageError(EXPECTED)


def _take_container(values: Values) -> None:
    """The container may be named by a flag or by the second word."""
    words = values.arguments
    if len(words) == 2:
        if values["container"]:
            raise CliError("only one of -c or an inline [CONTAINER] arg is allowed")
        values._values["container"] = words[1]
    if values["all-containers"] and values["container"]:
        raise CliError(
            "--all-containers=true should not be specified with container name "
            f"{values['container']}"
        )


def _check_since_time(values: Values) -> None:
    text = values.text("since-time")
    if text and values["since"]:
        raise CliError("at most one of --since-time or --since may be specified")
    if text and not RFC3339.match(text):
        raise CliError(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        )


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
        query["sinceSeconds"] = str(max(int(values["since"]), 1))
    if values["since-time"]:
        query["sinceTime"] = values.text("since-time")
    return query


def _pods(session: Session, values: Values) -> list[Obj]:
    namespace = session.namespace
    if values["selector"]:
        pods = session.discovery.find("pods")
        query = {"labelSelector": values.text("selector")}
        found = selection.list_objects(session, pods, namespace, query)
        if not found:
            session.complain(f"No resources found in {namespace} namespace.")
        return found
    word = values.arguments[0]
    try:
        if "/" not in word:
            return [session.api.json("GET", pods_of.pod_path(namespace, word))]
        if values["all-pods"]:
            return _all_pods(session, word)
        seconds = values["pod-running-timeout"]
        return [pods_of.attachable(session, [word], seconds, "get the logs from")]
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        raise CliError(
            f'error from server (NotFound): {error.message} in namespace "{namespace}"'
        ) from error


def _all_pods(session: Session, word: str) -> list[Obj]:
    target = selection.targets(session, [word])[0]
    obj = session.api.json("GET", target.resource.path(session.namespace, target.name))
    if target.resource.kind == "Pod":
        return [obj]
    query = {"labelSelector": pods_of.selector_of(obj, target.resource.kind, "get the logs from")}
    return selection.list_objects(session, session.discovery.find("pods"), session.namespace, query)


def _containers(session: Session, values: Values, pod: Obj) -> list[str]:
    if values["all-containers"]:
        spec = pod["spec"]
        return [
            item["name"]
            for field in ("initContainers", "containers", "ephemeralContainers")
            for item in spec.get(field) or []
        ]
    name = pods_of.container_of(session, pod, values.text("container"))
    if name not in pods_of.container_names(pod):
        raise CliError(f"container {name} is not valid for pod {pod['metadata']['name']}")
    return [name]


def _prefix(session: Session, pod: Obj, name: str, index: int) -> bytes:
    text = f"[pod/{pod['metadata']['name']}/{name}] "
    if session.io.is_terminal() and not session.io.environment.get("NO_COLOR"):
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
        session.complain(f"error: {error.message}")
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
        lead = _prefix(session, pod, name, index)
        if not values["prefix"] and values.is_set("prefix"):
            lead = b""
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
        pods_of.POD_TIMEOUT,
        switch("prefix", "Prefix each log line with the pod and container name."),
        switch("previous", "The logs of the container's last instance.", short="p"),
        Flag("since", "duration", 0.0, "Only return logs newer than this, like 5s, 2m, or 3h."),
        Flag("since-time", usage="Only return logs after a specific date (RFC3339)."),
        Flag("tail", "int64", -1, "Lines of recent log file to display."),
        switch("timestamps", "Include timestamps on each line in the log output."),
    ),
)
