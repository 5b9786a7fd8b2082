"""Another client of the same API server: how long it waits for a small answer, all the while.

Job: a process of its own that asks again and again, and says how long each answer took, by the
    clock and in processor time of the server; what the machine itself adds is measured beside it.
Invariant: what the server's threads took from question to answer, all of them together, is what
    kept it, and not who else is on the machine: at most what the answer takes on a quiet one, but
    for what its processors did at the same time.
Invariant: it and the server come before everybody else on the machine, where we may say so: what
    others burn is no part of a delay.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from sampan.client import kubeconfig
from sampan.core import tls
from sampan.core.fast_dataclass import dataclass
from tests.support.parts.sampan_process import SampanProcess, environment

PAUSE_SECONDS = 0.002
PATH = "/api/v1/namespaces/default"


@dataclass(frozen=True, slots=True)
class Delays:
    """In seconds. `own`: of the server's processor time; `noise`: how much later than asked for the
    machine woke the client meanwhile."""

    answers: int
    median: float
    p99: float
    p999: float
    longest: float
    own_p99: float
    own_p999: float
    own_longest: float
    noise_p999: float
    noise_longest: float

    def __str__(self) -> str:
        return (
            f"{self.answers} answers: p50 {self.median * 1000:.1f} ms, p99 {self.p99 * 1000:.1f}, "
            f"p99.9 {self.p999 * 1000:.1f}, longest {self.longest * 1000:.1f} (of the machine's "
            f"own: p99.9 {self.noise_p999 * 1000:.1f}, longest {self.noise_longest * 1000:.1f}); "
            f"in the server's processor time p99 {self.own_p99 * 1000:.1f}, "
            f"p99.9 {self.own_p999 * 1000:.1f}, longest {self.own_longest * 1000:.1f}"
        )


class AnotherClient:
    def __init__(self, program: "subprocess.Popen[str]") -> None:
        self._program = program
        self.delays: Delays | None = None

    def stop(self) -> Delays:
        if self.delays is None:
            assert self._program.stdin is not None
            said, complaint = self._program.communicate("stop\n", timeout=60)
            assert self._program.returncode == 0, complaint
            self.delays = Delays(**json.loads(said))
        return self.delays


@contextmanager
def another_client(cluster: SampanProcess) -> Iterator[AnotherClient]:
    """Its `delays` are there afterwards."""
    program = subprocess.Popen(
        [sys.executable, "-m", __name__, str(cluster.kubeconfig), str(cluster.pid)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(),
    )  # fmt: skip
    found = AnotherClient(program)
    with _first(cluster.pid, program.pid):
        try:
            yield found
            found.stop()
        finally:
            program.kill()
            program.communicate()


@contextmanager
def _first(*pids: int) -> Iterator[None]:
    """On the machine's processors. (Not by real-time scheduling, which the kernel takes away for a
    twentieth of each second from who is always busy.)"""
    threads = [int(each) for pid in pids for each in os.listdir(f"/proc/{pid}/task")]
    _set_niceness(-20, threads, pids)
    try:
        yield
    finally:
        _set_niceness(0, threads, pids)


def _set_niceness(nice: int, threads: Sequence[int], pids: Sequence[int]) -> None:
    if os.geteuid() != 0:
        return
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)
    for pid in pids:
        # Where sessions are weighed as groups, a nice process is nice among its own only.
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice))


def main() -> None:
    connection = kubeconfig.load(sys.argv[1], {}, "").connection()
    context = tls.client_context(ca_data=connection.ca, pair_data=connection.pair)
    where = urlsplit(connection.server)
    host, port = where.hostname or "", where.port or 443
    plain = socket.create_connection((host, port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = context.wrap_socket(plain, server_hostname=host)
    question = f"GET {PATH} HTTP/1.1\r\nhost: {where.netloc}\r\n\r\n".encode()
    clock = _processor_clock(int(sys.argv[2]))
    took: list[float] = []
    own: list[float] = []
    late: list[float] = []
    while not select.select([sys.stdin], [], [], 0)[0]:
        began, used = time.perf_counter(), time.clock_gettime(clock)
        server.sendall(question)
        _read_answer(server)
        answered = time.perf_counter()
        took.append(answered - began)
        own.append(min(time.clock_gettime(clock) - used, took[-1]))
        time.sleep(PAUSE_SECONDS)
        late.append(time.perf_counter() - answered - PAUSE_SECONDS)
    for measured in (took, own, late):
        measured.sort()
    print(json.dumps({
        "answers": len(took), "median": _at(took, 0.5), "p99": _at(took, 0.99),
        "p999": _at(took, 0.999), "longest": took[-1], "own_p99": _at(own, 0.99),
        "own_p999": _at(own, 0.999), "own_longest": own[-1], "noise_p999": _at(late, 0.999),
        "noise_longest": late[-1],
    }))  # fmt: skip


def _processor_clock(pid: int) -> int:
    """Of another process, all its threads: MAKE_PROCESS_CPUCLOCK of linux/posix-timers_types.h."""
    return (~pid << 3) | 2


def _read_answer(server: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(server)
    head, _, body = data.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    (length,) = (
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    while len(body) < length:
        body += _more(server)


def _more(server: socket.socket) -> bytes:
    data = server.recv(1 << 16)
    assert data, "the server is gone"
    return data


def _at(ordered: Sequence[float], part: float) -> float:
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


if __name__ == "__main__":
    main()
