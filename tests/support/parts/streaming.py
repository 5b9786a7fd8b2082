"""A streaming server as a container runtime has one: SPDY/3.1, for exec and port-forward.

Job: `SpdyCommand` plays a command that shouts back what it reads; `SpdyPorts` plays open ports.
    Frames come in the order in which containerd sends them: the status, then resets of everything.
"""

import orjson

from sampan.api.objects import Obj
from sampan.core.http import spdy
from sampan.core.http.messages import Connection


class SpdyCommand:
    """Reads stdin to its end (where there is one), answers in capitals, ends with `exit_code`."""

    def __init__(self, *, streams: int, exit_code: int = 0, breaks_off: bool = False) -> None:
        self._expected, self._exit_code, self._breaks_off = streams, exit_code, breaks_off
        self._session = spdy.Session(client=False)
        self.kinds: dict[int, str] = {}
        self.sizes = b""  # what came on the resize stream
        self.pongs: list[int] = []

    async def run(self, connection: Connection) -> None:
        done = False
        while not done and (data := await connection.read()):
            for event in self._session.feed(data):
                done = await self._take(event, connection) or done
        connection.close()

    async def _take(self, event: spdy.Event, connection: Connection) -> bool:
        """Whether the command has ended."""
        session = self._session
        match event:
            case spdy.Opened(stream, headers):
                self.kinds[stream] = headers["streamtype"]
                await connection.write(session.reply(stream))
                if len(self.kinds) == self._expected:
                    return await self._started(connection)
            case spdy.Data(stream, payload, fin) if self.kinds.get(stream) == "stdin":
                await self._say(connection, "stdout", payload.upper())
                if fin:
                    return await self._ended(connection)
            case spdy.Data(_, payload):
                self.sizes += payload
            case spdy.Ping(number):
                self.pongs.append(number)
        return False

    async def _started(self, connection: Connection) -> bool:
        await connection.write(self._session.ping(2))
        await self._say(connection, "stderr", b"started\n")
        return "stdin" not in self.kinds.values() and await self._ended(connection)

    async def _say(self, connection: Connection, kind: str, text: bytes) -> None:
        for stream, item in self.kinds.items():
            if item == kind and text:
                await connection.write(self._session.data(stream, text))

    async def _ended(self, connection: Connection) -> bool:
        if not self._breaks_off:
            await self._say(connection, "error", orjson.dumps(status_of(self._exit_code)))
            for stream in self.kinds:
                await connection.write(self._session.reset(stream))
        return True


class SpdyPorts:
    """Each port answers what it got, with its number before it, and ends when it got `end`."""

    def __init__(self) -> None:
        self._session = spdy.Session(client=False)
        self._ports: dict[int, bytes] = {}

    async def run(self, connection: Connection) -> None:
        while data := await connection.read():
            for event in self._session.feed(data):
                match event:
                    case spdy.Opened(stream, headers):
                        await connection.write(self._session.reply(stream))
                        if headers["streamtype"] == "data":
                            self._ports[stream] = headers["port"].encode()
                    case spdy.Data(stream, payload) if stream in self._ports:
                        answer = self._ports[stream] + b":" + payload
                        fin = payload == b"end"
                        await connection.write(self._session.data(stream, answer, fin=fin))


def status_of(exit_code: int) -> Obj:
    """What the runtime writes on the error stream."""
    if exit_code == 0:
        return {"metadata": {}, "status": "Success"}
    cause = {"reason": "ExitCode", "message": str(exit_code)}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {exit_code}",
        "details": {"causes": [cause]},
    }
