"""`cp`: files to and from containers, through tar.

Job: read the two places, run tar in the container, pack or unpack on this side.
Invariant: what is unpacked stays below the destination.
"""

import io
import os
import tarfile
from pathlib import Path, PurePosixPath

from sampan.api.errors import ApiError
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.cli.verbs.inspect.exec import check_phase
from sampan.cli.workloads import pods_of, streams
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    namespace: str
    pod: str
    path: str

    @property
    def is_remote(self) -> bool:
        return bool(self.pod)


FORMAT = "filespec must match the canonical format: [[namespace/]pod:]file/path"


def _place(session: Session, text: str) -> Place:
    name, colon, path = text.partition(":")
    if not colon:
        return Place("", "", text)
    pieces = name.split("/")
    if not name or len(pieces) > 2:
        raise CliError(FORMAT)
    return Place(pieces[0] if len(pieces) == 2 else session.namespace, pieces[-1], path)


def run(session: Session, values: Values) -> None:
    session.check_context()
    _ = session.connection
    if len(values.arguments) != 2:
        raise CliError("source and destination are required")
    source, target = (_place(session, text) for text in values.arguments)
    if source.is_remote and target.is_remote:
        raise CliError("one of src or dest must be a local file specification")
    if not source.path or not target.path:
        raise CliError("filepath can not be empty")
    if not source.is_remote and not target.is_remote:
        raise CliError("one of src or dest must be a remote file specification")
    if source.is_remote:
        _from_container(session, values, source, target.path)
    else:
        _to_container(session, values, source.path, target)


def _exec(
    session: Session, values: Values, place: Place, command: list[str], data: bytes | None
) -> bytes:
    pod = session.api.json("GET", pods_of.pod_path(place.namespace, place.pod))
    check_phase(pod)
    name = pods_of.container_of(session, pod, values.text("container"))
    query = [("command", word) for word in command] + [("container", name)]
    path = pods_of.pod_path(place.namespace, place.pod) + "/exec"
    out = io.BytesIO()
    wanted = streams.Wanted(data is not None, True, True, False)
    before = session.io.stdin
    try:
        if data is not None:
            session.io.stdin = io.BytesIO(data)
        streams.run(session, path, query, wanted, out)
    finally:
        session.io.stdin = before
    return out.getvalue()


def _from_container(session: Session, values: Values, source: Place, target: str) -> None:
    packed = _exec(session, values, source, ["tar", "cf", "-", source.path], None)
    base = PurePosixPath(source.path)
    into = Path(target)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive.getmembers():
            inner = _below(member.name, str(base).lstrip("/"))
            place = into if inner == "." else into / inner
            if into.is_dir() and not member.isdir() and inner == ".":
                place = into / base.name
            if not _stays_below(place, into):
                session.complain(f"warning: skipping {member.name}: it would leave {target}")
                continue
            _write_member(session, archive, member, place)


def _below(name: str, base: str) -> str:
    name = name.lstrip("/")
    if name == base:
        return "."
    return name.removeprefix(base).lstrip("/")


def _stays_below(place: Path, into: Path) -> bool:
    whole, base = os.path.abspath(place), os.path.abspath(into)
    return whole == base or whole.startswith(os.path.join(base, ""))


def _write_member(
    session: Session, archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path
) -> None:
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    if member.issym() or member.islnk():
        session.complain(f'warning: skipping symlink: "{place}" -> "{member.linkname}"')
        return
    content = archive.extractfile(member)
    if content is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.read())
    place.chmod(member.mode & 0o777)


def _to_container(session: Session, values: Values, source: str, target: Place) -> None:
    if not os.path.exists(source):
        raise CliError(f"{source} doesn't exist in local filesystem")
    folder, name = os.path.split(target.path.rstrip("/"))
    if target.path.endswith("/") or _is_folder(session, values, target):
        folder, name = target.path.rstrip("/") or "/", os.path.basename(os.path.abspath(source))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(source, arcname=name)
    command = ["tar", "-xmf", "-"]
    if values["no-preserve"]:
        command = ["tar", "--no-same-permissions", "--no-same-owner", "-xmf", "-"]
    _exec(session, values, target, [*command, "-C", folder or "/"], packed.getvalue())


def _is_folder(session: Session, values: Values, target: Place) -> bool:
    try:
        _exec(session, values, target, ["test", "-d", target.path], None)
    except (streams.CommandEnded, CliError, ApiError):
        return False  # what else is wrong, the copy itself tells
    return True


CP = Command(
    "cp", "cp <file-spec-src> <file-spec-dest> [options]",
    "Copy files and directories to and from containers.", run,
    (Flag("container", short="c", usage="Container name."),
     switch("no-preserve", "The copied file's ownership and permissions will not be preserved."),
     Flag("retries", "int", 0, "Accepted; a copy is one stream.")),
)  # fmt: skip
