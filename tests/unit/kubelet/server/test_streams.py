"""What an exec or attach request asks of the runtime."""

import asyncio

import pytest

from sampan.core.http.messages import Request
from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.kubelet.server.lookup import FoundContainer, NotAvailable
from sampan.kubelet.server.streams import StreamOptions, Streams, Target, stream_options


def test_the_query_names_command_and_streams():
    query = "input=1&output=1&error=1&command=sh&command=-c&command=echo+%24HOME"
    assert stream_options(query) == StreamOptions(
        stdin=True, stdout=True, stderr=True, tty=False, command=("sh", "-c", "echo $HOME")
    )


def test_an_empty_argument_is_an_argument():
    assert stream_options("output=1&command=echo&command=").command == ("echo", "")


def test_a_terminal_has_no_stderr_of_its_own():
    options = stream_options("input=1&output=1&error=1&tty=1")
    assert (options.tty, options.stderr) == (True, False)


def test_no_stream_at_all_is_refused():
    with pytest.raises(NotAvailable, match="you must specify at least 1 of stdin, stdout, stderr"):
        stream_options("command=ls")


class LookupThatMayBeLate:
    """What was last seen, and what is true."""

    def __init__(self, seen, now):
        self._seen, self._now = seen, now
        self.looks = 0

    def probably(self, *where):
        return self._seen

    async def find_container(self, *where, uid=""):
        self.looks += 1
        return FoundContainer(self._now, "", True)


class OneContainer:
    local_streams = None

    def __init__(self, there):
        self._there = there
        self.asked = []

    async def exec_url(self, container_id, streams):
        self.asked.append(container_id)
        if container_id != self._there:
            raise RuntimeFailure("container is in CONTAINER_EXITED state")
        return "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("seen", "now", "asked", "looks"),
    [("new", "new", ["new"], 0), ("old", "new", ["old", "new"], 1), ("", "new", ["new"], 1)],
)
def test_what_was_last_seen_is_tried_first_and_the_runtime_has_the_last_word(
    seen, now, asked, looks
):
    async def story():
        lookup, runtime = LookupThatMayBeLate(seen, now), OneContainer(now)
        streams = Streams(lookup, runtime)
        request = Request("POST", "/", "output=1&command=true", {}, b"")
        reply = await streams.run_in_container(Target("default", "web", "main"), request)
        assert reply.body == b"Upgrade request required\n"
        assert (runtime.asked, lookup.looks) == (asked, looks)
        await streams.close()

    asyncio.run(story())
