"""Requests between the processes of one cluster: what the API server asks the others.

Job: a socket on which a part answers questions by path; the API server's way to ask there.
Invariant: answers are read-only, and of no use to who may not open the socket.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import orjson

from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import Obj
from sampan.cmd.cluster.processes.local_sockets import address_of, listening_socket
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.messages import Request, Response
from sampan.core.http.origin import Origin
from sampan.core.http.server import Server

MEMORY, PLACE, WHY = "memory", "place", "why"
ASK_SECONDS = 5.0
GRACE_SECONDS = 1.0
_JSON = (("content-type", "application/json"),)

Answer = Callable[[str], Awaitable[Obj | None]]  # what follows the question's name → the answer


class PeerServer:
    """The part's end."""

    def __init__(self, directory: Path, part: str, answers: Mapping[str, Answer]) -> None:
        self._directory, self._name, self._answers = directory, f"{part}.sock", answers
        self._server = Server(self._reply, name=part)

    async def start(self) -> None:
        await self._server.start_on(listening_socket(self._directory, self._name))

    async def stop(self) -> None:
        await self._server.stop(GRACE_SECONDS)

    async def _reply(self, request: Request) -> Response:
        question, _, rest = request.path.removeprefix("/").partition("/")
        answer = self._answers.get(question)
        found = await answer(rest) if answer is not None else None
        return Response(404) if found is None else Response(200, _JSON, orjson.dumps(found))


class PeerClient:
    """The API server's end."""

    def __init__(self, directory: Path, part: str) -> None:
        self._part = part
        self._http = HttpClient(unix_path=address_of(directory, f"{part}.sock"))

    async def ask(self, question: str, rest: str) -> Obj | None:
        """Raises ServiceUnavailable."""
        url = f"http://{self._part}/{question}/{quote(rest)}"
        try:
            answer = await self._http.request("GET", url, timeout_seconds=ASK_SECONDS)
        except HttpError as error:
            raise ServiceUnavailable(f"the process of the {self._part} is away: {error}") from error
        if answer.status != 200:
            return None
        found: Obj = orjson.loads(answer.body)
        return found

    async def place_of(self, kubelet: Origin) -> Origin:
        """Where a simulated node answers; raises HttpError."""
        try:
            found = await self.ask(PLACE, kubelet.host)
        except ServiceUnavailable as error:
            raise HttpError(str(error)) from error
        return kubelet if found is None else Origin("https", found["host"], found["port"])

    async def close(self) -> None:
        await self._http.close()
