"""The node's own docker configuration: credentials that every pod of the node may pull with.

Job: find the file in upstream's order, and read it again when it has changed.
Invariant: a file that cannot be read is as good as none, and is named in the log once.
Owner: NodeCredentials.
"""

import os
from collections.abc import Sequence

from sampan.core.fast_dataclass import dataclass
from sampan.core.log import get_logger
from sampan.kubelet.images.registry_credentials import Entries, entries_of

log = get_logger(__name__)

LEGACY_NAME = ".dockercfg"


def search_order(root_dir: str, home: str) -> tuple[str, ...]:
    """As upstream, but without the working directory, where a config.json is anybody's."""
    homes = (home,) if home else ()
    return (
        f"{root_dir}/config.json",
        *(f"{item}/.docker/config.json" for item in homes),
        "/.docker/config.json",
        f"{root_dir}/{LEGACY_NAME}",
        *(f"{item}/{LEGACY_NAME}" for item in homes),
        f"/{LEGACY_NAME}",
    )


@dataclass(frozen=True, slots=True)
class _Version:
    path: str
    inode: int
    size: int
    changed_at: int


class CredentialFile:
    """The first of `paths` that is there and can be read."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._known: dict[str, tuple[_Version, Entries | None]] = {}

    def entries(self) -> Entries:
        for path in self._paths:
            found = self._read(path)
            if found:
                return found
        return ()

    def _read(self, path: str) -> Entries | None:
        try:
            stat = os.stat(path)
        except OSError:
            self._known.pop(path, None)
            return None
        version = _Version(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        known = self._known.get(path)
        if known is None or known[0] != version:
            known = self._known[path] = (version, _parse(path))
        return known[1]


def _parse(path: str) -> Entries | None:
    try:
        with open(path, "rb") as file:
            entries = entries_of(file.read(), legacy=path.endswith(LEGACY_NAME))
    except (OSError, ValueError) as error:
        log.warning("a file with registry credentials cannot be read", path=path, error=error)
        return None
    # Tools that keep the secret elsewhere (credsStore) leave empty entries.
    return [entry for entry in entries if entry[1].is_something]
