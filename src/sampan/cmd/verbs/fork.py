"""`sampan fork`: a second cluster that goes on from the state of another one.

Job: the objects of a cluster or of a snapshot into a new data directory; start it in the background
    with simulated nodes in the place of those that there were.
Invariant: the other cluster hears nothing of it; the new one has keys of its own.
Invariant: a fork that fails leaves no directory behind.
"""

import gc
import json
import os
import shutil
import sys
from pathlib import Path

from sampan.cmd.background import Started, go_to_background
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, Lock, open_data_dir, write_private
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.cmd.snapshot.origin import copied, facts_in, written
from sampan.cmd.snapshot.snapshot_file import BadSnapshot, directory_of, path_of, read
from sampan.cmd.verbs.up import report
from sampan.core.clock import SystemClock, program_began
from sampan.store.contract import StoreError

NODES_FILE = "nodes.yaml"


def run(data_dir: str, snapshot: str, to: str) -> int:
    began = program_began()
    is_new = not Path(to).exists()
    try:
        target = _new_directory(to)
    except (DataDirError, CannotStart) as error:
        return _fail(str(error))
    orders, giving = os.pipe()
    side = go_to_background(target.log_file, keep=[orders])
    if not isinstance(side, Started):
        return _serve(target, orders, side, began)
    os.close(orders)
    with os.fdopen(giving, "w") as other:
        try:
            json.dump(_fill(data_dir, snapshot, target), other)
        except _Failed as error:
            other.close()  # without a word: it ends
            side.wait()
            _remove(target, is_new=is_new)
            return _fail(str(error))
    code = report(side, target)
    if code == 0:
        print(f"again after that: {' '.join(_start_again(target))}")
    return code


class _Failed(Exception):
    """One sentence."""


def _new_directory(to: str) -> DataDir:
    if Path(to).is_dir() and any(Path(to).iterdir()):
        raise CannotStart(f"{to} is not empty: a fork needs a directory of its own")
    return open_data_dir(to)


def _fill(data_dir: str, snapshot: str, target: DataDir) -> dict[str, object]:
    """What the other process is told: how its first step went. Raises _Failed."""
    began = SystemClock().monotonic()
    try:
        lock = Lock.take(target)
        try:
            detail = _bring_objects(data_dir, snapshot, target.store)
        finally:
            lock.release()
    except (DataDirError, BadSnapshot, CannotStart, StoreError) as error:
        raise _Failed(str(error)) from error
    except OSError as error:
        raise _Failed(f"{error.filename or target.root}: {error.strerror or error}") from error
    return {"detail": detail, "seconds": SystemClock().monotonic() - began}


def _bring_objects(data_dir: str, snapshot: str, target: Path) -> str:
    data = directory_of(data_dir, must_exist=os.sep not in snapshot)
    if snapshot:
        return written(read(path_of(data, snapshot)), target, SystemClock().now())
    if detail := copied(data, target):
        return detail
    from sampan.api.errors import ApiError
    from sampan.client.blocking import NoAnswer
    from sampan.client.kubeconfig import KubeconfigError
    from sampan.cmd.verbs.snapshot import taken, unlike_the_cluster

    try:
        detail = written(taken(data), target, SystemClock().now())
        return "; ".join((detail, *unlike_the_cluster(data)))
    except (ApiError, NoAnswer, KubeconfigError) as error:
        raise CannotStart(f"the cluster cannot be read: {error}") from error


def _serve(target: DataDir, orders: int, ready: int, began: float) -> int:
    """In the process of the new cluster."""
    gc.disable()  # as cmd/main.py does for `sampan up`
    progress = Progress(sys.stdout, SystemClock(), began)
    with progress.step("program") as step:
        from sampan.cmd import foreground  # the other process copies meanwhile
        from sampan.cmd.flags.parser import parser_of_verbs
        from sampan.cmd.flags.up_flags import up_settings

        step.detail = "loaded"
    with os.fdopen(orders) as waited_for:
        text = waited_for.read()
    if not text:
        return 1  # the other process says why
    told = json.loads(text)
    progress.report("objects", told["detail"], told["seconds"])
    _note_facts(target)
    given = parser_of_verbs("up").parse_args(_start_again(target)[1:])
    # Its nodes are Ready already, in the objects; their agents follow in a moment.
    audience = foreground.Audience(progress, ready, only_for_api=True)
    return foreground.run(up_settings(given), target, audience)


def _note_facts(target: DataDir) -> None:
    from sampan.cmd.lab.recording import nodes_document

    facts = facts_in(target.store)
    if facts.service_cidrs:
        target.remember(service_cidr=",".join(facts.service_cidrs))
    if facts.nodes:
        text = json.dumps(nodes_document(facts.nodes, by_name=True), indent=1)
        write_private(target.root / NODES_FILE, text.encode())


def _start_again(target: DataDir) -> list[str]:
    nodes = target.root / NODES_FILE
    simulated = ["--runtime", "simulated", "--nodes-file", str(nodes)]
    chosen = simulated if nodes.exists() else ["--runtime", "none"]
    return ["sampan", "up", "--data-dir", str(target.root), "--port", "0", *chosen]


def _remove(target: DataDir, *, is_new: bool) -> None:
    if is_new:
        shutil.rmtree(target.root)
        return
    for path in target.root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _fail(sentence: str) -> int:
    print(f"sampan: {' '.join(sentence.split())}", file=sys.stderr)
    return 1
