"""Which cluster is meant where nobody names one.

Job: the directory of this folder's cluster, else that of the kubeconfig's current context, else
    that of the only one that runs, else that of the only one there is, else the default one.
Invariant: what is guessed is there; nothing is made, and nothing of another user is looked at.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from sampan.cmd.cluster.cluster_names import (
    DATA_DIR,
    DEFAULT_NAME,
    HERE,
    NAME,
    data_path,
    known_clusters,
    state_directory,
)
from sampan.cmd.errors import CannotStart


def chosen_path(environment: Mapping[str, str], here: Path, home: str) -> Path:
    """The variables are as good as the flags they stand for."""
    given, name = environment.get(DATA_DIR, ""), environment.get(NAME, "")
    if given or name or (here / HERE).is_dir():
        return data_path(given, name, environment, here)
    known = [path for _, path in known_clusters(environment, here)]
    found = _of_context(known, environment, home)
    if found is not None:
        return found
    return _only_one(known) or state_directory(environment) / DEFAULT_NAME


def found_kubeconfig(environment: Mapping[str, str]) -> str:
    """Of the cluster that is meant, where it is there; for who has no kubeconfig."""
    with contextlib.suppress(CannotStart):  # the verb says so, where it needs it
        path = chosen_path(environment, Path.cwd(), os.path.expanduser("~")) / "kubeconfig"
        if path.exists():
            return str(path)
    return ""


def _of_context(known: list[Path], environment: Mapping[str, str], home: str) -> Path | None:
    """The cluster whose authority signs for the current context."""
    if not known:
        return None
    from sampan.client import kubeconfig

    try:
        config = kubeconfig.load("", environment, home)
        context = config.contexts.get(config.current_context) or {}
        cluster = config.clusters.get(context.get("cluster") or "") or {}
        authority = kubeconfig.bytes_of(cluster, "certificate-authority")
    except (kubeconfig.KubeconfigError, OSError):
        return None
    return next((path for path in known if authority and _authority(path) == authority), None)


def _authority(root: Path) -> bytes | None:
    try:
        return (root / "pki" / "ca.crt").read_bytes()
    except OSError:
        return None


def _only_one(known: list[Path]) -> Path | None:
    from sampan.cmd.cluster.data_dir import DataDir, holder

    running = [path for path in known if holder(DataDir(path))]
    if len(running) == 1:
        return running[0]
    return known[0] if len(known) == 1 and not running else None
