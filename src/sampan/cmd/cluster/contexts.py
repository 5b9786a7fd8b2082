"""The cluster's contexts in kubeconfigs that it shares with other clusters.

Job: put the context in under a name of its own, remember where, take every one out again.
Invariant: an entry of another cluster is neither overwritten nor removed.
"""

import contextlib
import hashlib
from pathlib import Path

from sampan.client.kubeconfig import Connection, KubeconfigError
from sampan.client.kubeconfig_file import (
    authority_of,
    current_context,
    remove_context,
    write_kubeconfig,
)
from sampan.cmd.cluster.data_dir import DataDir

_FIELDS = {"file", "context", "before"}


def put(data: DataDir, path: Path, admin: Connection, *, name: str = "", use: bool = True) -> str:
    """The context's name. One that is taken by another cluster is never used; `use` makes it the
    current one."""
    if name and _is_of_another(path, name, admin):
        raise KubeconfigError(
            f'context "{name}" in {path} leads to another cluster: choose another name'
        )
    chosen = name or _free_name(data, path, admin)
    before, known = current_context(path), _remembered(data)
    same = [entry for entry in known if (entry["file"], entry["context"]) == (str(path), chosen)]
    if before == chosen:
        before = same[0]["before"] if same else ""
    write_kubeconfig(path, admin, chosen, use=use)
    entry = {"file": str(path), "context": chosen, "before": before}
    if same != [entry]:
        data.remember(contexts=[*(item for item in known if item not in same), entry])
    return chosen


def take_out(data: DataDir, path: Path | None = None, name: str = "") -> list[tuple[str, str]]:
    """Every context that was put somewhere (in `path` only, or of that name only, where given), as
    far as it is still ours: file and context of what is gone."""
    gone, kept = [], []
    for entry in _remembered(data):
        file, context = Path(entry["file"]), entry["context"]
        if (path is not None and file != path) or (name and context != name):
            kept.append(entry)
            continue
        with contextlib.suppress(KubeconfigError, OSError):  # broken since, or not ours to write
            if authority_of(file, context) == _authority(data):
                remove_context(file, context, entry["before"])
                gone.append((str(file), context))
    data.remember(contexts=kept)
    return gone


def _remembered(data: DataDir) -> list[dict[str, str]]:
    record = data.record()
    if "contexts" not in record and record.get("kubeconfig"):  # of an older sampan
        return [{"file": record["kubeconfig"], "context": data.context_name, "before": ""}]
    found = record.get("contexts")
    entries = found if isinstance(found, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and entry.keys() >= _FIELDS]


def _authority(data: DataDir) -> bytes | None:
    path = data.pki / "ca.crt"
    return path.read_bytes() if path.exists() else None


def _free_name(data: DataDir, path: Path, admin: Connection) -> str:
    """After the directory; two clusters whose directories have the same name keep apart."""
    if not _is_of_another(path, data.context_name, admin):
        return data.context_name
    short = hashlib.sha256(str(data.root).encode()).hexdigest()[:6]
    return f"{data.context_name}-{short}"


def _is_of_another(path: Path, name: str, admin: Connection) -> bool:
    return authority_of(path, name) not in (None, admin.ca)
