"""Who is connected to this process, and whether he works."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from sampan.core.virtual_time.peer_processes import PeerProcesses

CONNECTS = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for line in sys.stdin:
    if line == "work\\n":
        while True:
            pass
"""


@contextmanager
def connected():
    """A process with a connection to a socket that this one listens on."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        subprocess.Popen(
            [sys.executable, "-c", CONNECTS, str(listening.getsockname()[1])],
            stdin=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        accepted, _ = listening.accept()
        with accepted:
            yield process
        process.kill()


def looks(peers, until, seconds=20.0):
    """Look until it is so."""
    end = time.monotonic() + seconds
    while not until(found := peers.busy()):
        assert time.monotonic() < end, found
        time.sleep(0.02)


@pytest.mark.slow
def test_one_that_waits_is_idle_and_one_that_computes_is_busy():
    with connected() as process:
        peers = PeerProcesses(time.monotonic)
        looks(peers, lambda busy: busy == frozenset())
        process.stdin.write("work\n")
        process.stdin.flush()
        looks(peers, lambda busy: busy == {process.pid})
        peers.give_up(1.0)
        time.sleep(0.05)
        assert peers.have_rested(1.0), "nobody waits for it any more"


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:0 0 0 0 11
   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:0 0 0 0 22
   2: 0100007F:C002 0100007F:0050 01 00000000:00000000 00:0 0 0 0 33
"""


def kernel(tmp_path):
    """Process 900 is connected to a port of this one, and sleeps."""
    me = tmp_path / str(os.getpid())
    for place, links in {me: ["socket:[11]"], tmp_path / "900": ["socket:[22]"]}.items():
        (place / "fd").mkdir(parents=True)
        (place / "task" / "1").mkdir(parents=True)
        (place / "task" / "1" / "schedstat").write_text("5 6 1\n")
        (place / "task" / "1" / "stat").write_text("1 (a (odd) R) S 1 1\n")
        for number, link in enumerate(links):
            (place / "fd" / str(number)).symlink_to(link)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(TABLE)
    moments = iter([1.0, 2.0, 3.0, 4.0])
    return PeerProcesses(lambda: next(moments), tmp_path)


def test_a_table_of_the_kernel_names_the_owners(tmp_path):
    peers = kernel(tmp_path)
    assert peers.busy() == {900}, "nobody has looked at it before"
    assert peers.busy() == frozenset()


def test_one_that_waits_for_a_processor_is_busy(tmp_path):
    peers = kernel(tmp_path)
    assert peers.busy()
    (tmp_path / "900/task/1/stat").write_text("1 (a) R 1 1\n")
    assert peers.busy() == {900}, "the kernel has not counted its wait yet"
    (tmp_path / "900/task/1/stat").write_text("1 (a) D 1 1\n")
    assert peers.busy() == {900}, "it waits for a disk"
    (tmp_path / "900/task/1/stat").write_text("1 (a) S 1 1\n")
    assert peers.busy() == frozenset()


def test_one_that_has_not_read_what_it_was_sent_is_busy(tmp_path):
    peers = kernel(tmp_path)
    assert peers.busy()
    table = TABLE.replace("1F90 01 00000000:00000000", "1F90 01 00000000:000000A0")
    (tmp_path / "net/tcp").write_text(table)
    assert peers.busy() == {900}
    (tmp_path / "net/tcp").write_text(TABLE)
    assert peers.busy() == frozenset()


def test_one_has_rested_so_long_after_it_was_last_seen_at_work(tmp_path):
    peers = kernel(tmp_path)
    assert not peers.have_rested(1.5), "at 1 it is new"
    assert not peers.have_rested(1.5), "at 2 it sleeps"
    assert peers.have_rested(1.5), "at 3 it has for long enough"


def test_what_was_done_since_a_look_long_ago_was_done_just_now(tmp_path):
    peers = kernel(tmp_path)
    assert peers.busy()
    (tmp_path / "900/task/1/schedstat").write_text("30000005 6 1\n")  # 30 ms of a second
    assert peers.busy() == {900}


def test_how_long_one_waited_for_a_processor_is_told(tmp_path):
    peers = kernel(tmp_path)
    assert peers.busy()
    assert peers.starved_seconds == 0.0
    (tmp_path / "900/task/1/schedstat").write_text("5 500000006 1\n")
    assert peers.busy() == {900}
    assert peers.starved_seconds == 0.5


def test_one_whom_nobody_waits_for_is_waited_for_again_when_it_has_rested(tmp_path):
    peers = kernel(tmp_path)
    assert not peers.have_rested(1.5)
    peers.give_up(1.5)
    assert peers.have_rested(1.5), "at 2 it sleeps, not long enough, and nobody waits"
    assert peers.have_rested(0.5), "at 3 it has rested"
    (tmp_path / "900/task/1/stat").write_text("1 (a) R 1 1\n")
    assert not peers.have_rested(0.5)


def test_without_a_table_nobody_is_busy(tmp_path):
    assert PeerProcesses(time.monotonic, Path(tmp_path / "none")).busy() == frozenset()
