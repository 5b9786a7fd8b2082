"""What the API server asks the other processes."""

import asyncio

import pytest

from sampan.api.errors import ServiceUnavailable
from sampan.cmd.cluster.processes.peer_requests import PLACE, WHY, PeerClient, PeerServer
from sampan.core.http.errors import HttpError
from sampan.core.http.origin import Origin


def test_a_question_is_answered_by_the_part_that_knows(tmp_path):
    async def why(rest):
        return {"asked": rest} if rest.startswith("default/") else None

    async def place(host):
        return {"host": "127.0.0.1", "port": 4711} if host == "172.16.0.1" else None

    async def story():
        answers = PeerServer(tmp_path, "nodes", {WHY: why, PLACE: place})
        await answers.start()
        questions = PeerClient(tmp_path, "nodes")
        assert await questions.ask(WHY, "default/web") == {"asked": "default/web"}
        assert await questions.ask(WHY, "elsewhere/web") is None
        assert await questions.ask("else", "default/web") is None
        simulated = Origin("https", "172.16.0.1", 10250)
        assert await questions.place_of(simulated) == Origin("https", "127.0.0.1", 4711)
        real = Origin("https", "192.0.2.1", 10250)
        assert await questions.place_of(real) == real
        await questions.close()
        await answers.stop()

    asyncio.run(story())


def test_a_part_that_is_away_is_said_to_be_away(tmp_path):
    async def story():
        questions = PeerClient(tmp_path, "scheduler")
        with pytest.raises(ServiceUnavailable, match="scheduler is away"):
            await questions.ask(WHY, "default/web")
        with pytest.raises(HttpError):
            await questions.place_of(Origin("https", "172.16.0.1", 10250))
        await questions.close()

    asyncio.run(story())
