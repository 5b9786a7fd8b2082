"""`sampan up`: a cluster, here or in the background.

Job: find the data directory, start the cluster in it; of one in the background, say how it went.
Invariant: a command that only waits for another process imports nothing of a cluster.
"""

import os
import sys
from pathlib import Path

from sampan.cmd.background import Started, go_to_background
from sampan.cmd.cluster import cluster_names
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, open_data_dir
from sampan.cmd.cluster.progress import Progress, has_colours, paint_marks
from sampan.cmd.cluster.releases import kept_minor, use_release
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import UpSettings
from sampan.core.clock import SystemClock, program_began


def run(settings: UpSettings, *, detach: bool) -> int:
    ready, began = -1, program_began()
    try:
        data = open_data_dir(settings.data_dir)
        use_release(settings.release, kept_minor(data), _warn)
    except (DataDirError, CannotStart) as error:
        print(f"sampan: {error}", file=sys.stderr, flush=True)
        return 1
    if detach:
        side = go_to_background(data.log_file)
        if isinstance(side, Started):
            return report(side, data)
        ready = side
    from sampan.cmd import foreground

    progress = Progress(sys.stdout, SystemClock(), began)
    return foreground.run(settings, data, foreground.Audience(progress, ready))


def run_part(settings: UpSettings, word: str) -> int:
    """As a process of a cluster that is several."""
    from sampan.cmd.cluster.processes import child, handover

    place = handover.place_in(word)
    if not handover.node_in(place.part):
        return child.run(settings, place)
    from sampan.cmd.verbs.machine import node_part

    node_part.load()
    return child.run(settings, place, node_part.node_of, node_part.enter_network)


def _warn(text: str) -> None:
    print(f"sampan: {text}", file=sys.stderr, flush=True)


def report(started: Started, data: DataDir) -> int:
    """How it went; the exit code."""
    is_ready, printed = started.wait()
    if has_colours(sys.stdout):
        printed = paint_marks(printed)
    if is_ready:
        stop = " ".join(["sampan down", *_words_for(data.root)])
        print(f"{printed}\n\nin the background; `{stop}` stops it")
        return 0
    print(printed or f"sampan: it ended early; see {data.log_file}", file=sys.stderr)
    return 1


def _words_for(root: Path) -> list[str]:
    """How a verb is told which cluster is meant; none, where it finds it by itself."""
    if cluster_names.data_path("", "", os.environ, Path.cwd()) == root:
        return []
    name = cluster_names.name_of_directory(root, os.environ)
    return ["--name", name] if name else ["--data-dir", str(root)]
