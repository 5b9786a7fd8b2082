"""`cluster-info dump`: the state of namespaces, for whoever looks for a fault later.

Job: lists of objects and the logs of all containers, to standard output or to files of a directory.
"""

import os
from collections.abc import Iterator

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import ALL_NAMESPACES
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.workloads.pods_of import NOT_POSITIVE, pod_path, pod_timeout

LISTS = (
    ("events", "/api/v1"), ("replicationcontrollers", "/api/v1"), ("services", "/api/v1"),
    ("daemonsets", "/apis/apps/v1"), ("deployments", "/apis/apps/v1"),
    ("replicasets", "/apis/apps/v1"), ("pods", "/api/v1"),
)  # fmt: skip
FILES = {"replicationcontrollers": "replication-controllers"}
ENDINGS = {"json": ".json", "yaml": ".yaml"}


def run(session: Session, values: Values) -> None:
    folder = values.text("output-directory")
    printer = ObjectPrinter(values, typed=True)
    _ = session.connection
    if values["pod-running-timeout"] <= 0:
        raise CliError(NOT_POSITIVE)
    session.check_context()
    ending = ENDINGS.get(printer.format, ".txt")
    for name, text in _parts(session, values, printer, ending):
        if folder in ("", "-"):
            session.write(text)
        else:
            _write(os.path.join(folder, name), text)
    if folder not in ("", "-"):
        session.print(f"Cluster info dumped to {folder}")


def _parts(
    session: Session, values: Values, printer: ObjectPrinter, ending: str
) -> Iterator[tuple[str, str]]:
    """(file, text), in the order in which they are printed."""
    yield f"nodes{ending}", printer.text(_as_decoded(session.api.json("GET", "/api/v1/nodes")))
    for namespace in _namespaces(session, values):
        for plural, root in LISTS:
            answer = session.api.json("GET", f"{root}/namespaces/{namespace}/{plural}")
            file = f"{namespace}/{FILES.get(plural, plural)}{ending}"
            yield file, printer.text(_as_decoded(answer))
        for pod in answer.get("items") or []:
            yield f"{namespace}/{pod['metadata']['name']}/logs.txt", _logs(session, pod)


def _namespaces(session: Session, values: Values) -> list[str]:
    if values["all-namespaces"]:
        items = session.api.json("GET", "/api/v1/namespaces").get("items") or []
        return [item["metadata"]["name"] for item in items]
    return list(values["namespaces"]) or ["kube-system", session.namespace]


def _as_decoded(answer: Obj) -> Obj:
    """No items are null, as in a list that kubectl has read in protobuf."""
    return {**answer, "items": answer.get("items") or None}


def _logs(session: Session, pod: Obj) -> str:
    meta, spec = pod["metadata"], pod["spec"]
    where = f"{meta['namespace']}/{meta['name']}"
    path = f"{pod_path(meta['namespace'], meta['name'])}/log"
    text = ""
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        name = container["name"]
        text += f"==== START logs for container {name} of pod {where} ====\n"
        try:
            answer = session.api.ask("GET", path, {"container": name}, accept="*/*")
            text += answer.body.decode(errors="replace")
        except ApiError as error:
            text += f"Request log error: {error.message}\n"
        text += f"==== END logs for container {name} of pod {where} ====\n"
    return text


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


_OUTPUT, *_MORE = PRINT_FLAGS
DUMP = Command(
    "dump",
    "cluster-info dump [flags] [options]",
    "Dump relevant information for debugging and diagnosis",
    run,
    (
        Flag("output", default="json", short="o", usage=_OUTPUT.usage),
        *_MORE,
        ALL_NAMESPACES,
        Flag("namespaces", "slice", [], "Namespaces to dump (default: kube-system and this one)."),
        Flag("output-directory", usage="Where to write files; empty or -: standard output."),
        pod_timeout(20.0),
    ),
)
