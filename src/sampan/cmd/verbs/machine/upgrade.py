"""`sampan upgrade`: may this version go on with a cluster's data?

Job: check the format of the directory, the store, keys and certificates, and a configuration
    file, before the cluster is started with another sampan.
Invariant: looking changes nothing; the data is written only by `sampan up`.
"""

import sys
from collections.abc import Iterator, Sequence

from sampan.cmd.cluster.data_dir import FORMAT, DataDir, DataDirError, find_data_dir, holder
from sampan.cmd.errors import CannotStart, reason_of
from sampan.cmd.verbs.machine.checks import Check, check_lines
from sampan.core.digits import is_digits
from sampan.store.contract import StoreError
from sampan.store.sqlite_file import SCHEMA_VERSION
from sampan.store.sqlite_file import examine as examine_store
from sampan.version import VERSION

BACKUP = "put it back from a backup"


def run(data_dir: str, problems_of_config: Sequence[str]) -> int:
    try:
        data = find_data_dir(data_dir)
    except DataDirError as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    checks = [*examine(data), *(Check("configuration", False, text) for text in problems_of_config)]
    print("\n".join(check_lines(checks)))
    if all(check.is_ok for check in checks):
        print(f"\nsampan {VERSION} can go on with {data.root}")
        return 0
    print(f"\nsampan {VERSION} cannot go on with {data.root} as it is", file=sys.stderr)
    return 1


def examine(data: DataDir) -> Iterator[Check]:
    last = str(data.record().get("version") or "unknown")
    pid = holder(data)
    running = f", running (process {pid}): it is restarted with `sampan down` and `sampan up`"
    yield Check("version", True, f"{last} wrote it, this is {VERSION}{running if pid else ''}")
    yield _format(data)
    yield store(data)
    yield _keys(data)


def _format(data: DataDir) -> Check:
    text = data.format_file.read_text().strip()
    if not is_digits(text):
        return Check("format", False, f"{data.format_file} is damaged", BACKUP)
    remedy = "a newer sampan wrote it: install that one"
    return Check("format", int(text) <= FORMAT, f"{text}, this version knows {FORMAT}", remedy)


def store(data: DataDir) -> Check:
    """Only of SQLite: what is elsewhere is not in the directory."""
    if not data.store.exists():
        return Check("store", True, "not on disk here")
    try:
        version = examine_store(data.store)
    except StoreError as error:
        return Check("store", False, str(error))
    return Check("store", True, f"version {version}, this version knows {SCHEMA_VERSION}")


def _keys(data: DataDir) -> Check:
    from sampan.cmd.cluster.certificates.signing import check_authorities

    try:
        count = check_authorities(data.pki)
    except (CannotStart, OSError) as error:
        text = str(error) if isinstance(error, CannotStart) else reason_of(error)
        return Check("keys", False, text)
    return Check("keys", True, f"{count} authorities, as they should be")
