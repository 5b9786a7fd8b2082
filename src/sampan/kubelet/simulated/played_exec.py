"""What a command in a simulated container does, towards whoever runs it.

Job: speak as a runtime's streaming server does (SPDY/3.1): when every stream is there, write what
    the script says, then the status, and end.
Invariant: what the client writes is read and means nothing.
"""

from collections.abc import Sequence

import orjson

from sampan.api.objects import Obj
from sampan.core import spdy
from sampan.core.http import Connection, Headers
from sampan.kubelet.contracts.runtime import ExecResult

SPDY = "SPDY/3.1"
PROTOCOL = "v4.channel.k8s.io"
HEADERS: Headers = (
    ("connection", "Upgrade"),
    ("upgrade", SPDY),
    ("x-stream-protocol-version", PROTOCOL),
)


class PlayedExec:
    def __init__(self, result: ExecResult, kinds: Sequence[str]) -> None:
        """`kinds`: of the streams that the client opens."""
        self._result, self._expected = result, len(kinds)
        self._session = spdy.Session(client=False)
        self._streams: dict[str, int] = {}

    async def run(self, connection: Connection) -> None:
        while len(self._streams) < self._expected and (data := await connection.read()):
            for event in self._session.feed(data):
                if isinstance(event, spdy.Opened):
                    self._streams[event.headers.get("streamtype", "")] = event.stream
                    await connection.write(self._session.reply(event.stream))
        if len(self._streams) == self._expected:
            await self._play(connection)
        connection.close()

    async def _play(self, connection: Connection) -> None:
        status = orjson.dumps(exit_status(self._result.exit_code))
        said = {"stdout": self._result.stdout, "stderr": self._result.stderr, "error": status}
        for kind, text in said.items():
            if kind in self._streams and text:
                await connection.write(self._session.data(self._streams[kind], text))
        for stream in self._streams.values():
            await connection.write(self._session.reset(stream))


def exit_status(code: int) -> Obj:
    """What a runtime writes on the error stream."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
