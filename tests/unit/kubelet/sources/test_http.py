"""[N1] A URL as a source of pods, with a real HTTP server."""

import asyncio

from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.kubelet.sources.http import HttpSource
from sampan.kubelet.sources.manifests import BadManifest


def decode(data, url):
    if data == b"bad":
        raise BadManifest("it is bad")
    return [{"word": word} for word in data.decode().split()]


def test_the_last_good_set_stays_whatever_the_server_answers_then():
    """Each answer in turn; a set is delivered only when a good one differs from the one before."""
    answers = [(500, b""), (200, b"bad"), (200, b"a b"), (200, b"a b"), (404, b"a"), (200, b"")]
    sets, seen = [], []

    async def answer(request):
        seen.append(request.headers.get("x-token"))
        status, body = answers[len(seen) - 1]
        return Response(status, (), body)

    async def story():
        server = Server(answer)
        port = await server.start("127.0.0.1", 0)
        source = HttpSource(
            f"http://127.0.0.1:{port}/pods",
            deliver=lambda pods: sets.append([one["word"] for one in pods]),
            decode=decode,
            clock=SystemClock(),
            headers=(("x-token", "t"),),
        )
        http = HttpClient()
        for expected in ([], [], [["a", "b"]], [["a", "b"]], [["a", "b"]], [["a", "b"], []]):
            await source.ask(http)
            assert sets == expected
        await server.stop(0)
        await source.ask(http)
        assert sets == [["a", "b"], []], "nobody answers: nothing changes"
        await http.close()

    asyncio.run(story())
    assert set(seen) == {"t"}
