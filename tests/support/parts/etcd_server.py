"""A real etcd for tests: Debian's package, on loopback, in a directory of its own.

Job: start one member or three, kill one, start it again on its data, stop all by their pids.
Invariant: nothing of it outlives the `with`.
"""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.parts.certificates import Authority, Pair
from tests.support.parts.processes import Program

# etcd syncs every write to its disk; in memory that costs nothing.
_MEMORY = Path("/dev/shm")
# A quick election, for members that are a loopback away from each other.
_TIMING = ("--heartbeat-interval", "20", "--election-timeout", "200")


class EtcdMember:
    def __init__(self, directory: Path, name: str, flags: tuple[str, ...]) -> None:
        self.directory, self.name, self._flags = directory, name, flags
        self.port, self.peer_port = _free_ports(2)
        self._cluster = f"{name}={self.peer_url}"
        self.program: Program | None = None

    @property
    def scheme(self) -> str:
        return "https" if "--cert-file" in self._flags else "http"

    @property
    def peer_url(self) -> str:
        return f"http://127.0.0.1:{self.peer_port}"

    def join(self, members: "list[EtcdMember]") -> None:
        self._cluster = ",".join(f"{member.name}={member.peer_url}" for member in members)

    def start(self) -> None:
        url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.program = Program(
            [
                "etcd", "--name", self.name, "--data-dir", str(self.directory / self.name),
                "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", self.peer_url,
                "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", self._cluster, "--logger", "zap", *_TIMING, *self._flags,
            ],
            self.directory / f"{self.name}.out",
        )  # fmt: skip

    def wait(self) -> None:
        assert self.program is not None
        self.program.wait_until(self._serves)

    def kill(self) -> None:
        if self.program is not None:
            self.program.kill()

    def _serves(self) -> bool:
        assert self.program is not None
        return "serving client traffic" in self.program.output.read_text()


@contextmanager
def etcd_cluster(size: int, *flags: str) -> Iterator[list[EtcdMember]]:
    with ExitStack() as undo:
        inside = _MEMORY if _MEMORY.is_dir() else None
        directory = Path(tempfile.mkdtemp(prefix="sampan-etcd-", dir=inside))
        undo.callback(shutil.rmtree, directory)
        members = [EtcdMember(directory, f"m{number}", flags) for number in range(size)]
        for member in members:
            member.join(members)
            undo.callback(member.kill)
            member.start()
        for member in members:
            member.wait()
        yield members


@contextmanager
def etcd_url() -> Iterator[str]:
    """The URL of a new, empty etcd."""
    with etcd_cluster(1) as members:
        yield url_of(members)


def url_of(members: list[EtcdMember], rest: str = "") -> str:
    return "etcd://" + ",".join(f"127.0.0.1:{member.port}" for member in members) + rest


def tls_flags(authority: Authority, pair: Pair) -> tuple[str, ...]:
    """etcd with this certificate, for clients that the authority knows."""
    return (
        "--cert-file", str(pair.cert_path), "--key-file", str(pair.key_path),
        "--client-cert-auth", "--trusted-ca-file", str(authority.ca_path),
    )  # fmt: skip


def _free_ports(wanted: int) -> list[int]:
    with ExitStack() as undo:
        sockets = [undo.enter_context(socket.socket()) for _ in range(wanted)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]
