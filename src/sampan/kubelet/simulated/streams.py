"""exec and port-forward of simulated pods: what they answer is scripted, the client is real.

Job: run the scripted command, then write what it said and how it ended to the client's channels;
    connect a client with what a script says of a port.
Invariant: what the client writes is read and means nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import orjson

from sampan.core.http.messages import Reply, Request
from sampan.kubelet.contracts.local_streams import StreamOptions, exit_status
from sampan.kubelet.contracts.runtime import ExecResult, RuntimeFailure
from sampan.kubelet.simulated.script import Script
from sampan.kubelet.simulated.scripted_ports import connect
from sampan.kubelet.streams import port_forward
from sampan.kubelet.streams.channels import STDERR, STDOUT, Channels, upgrade

PLAY_SECONDS = 60.0  # more than any script takes

Run = Callable[[str, Sequence[str], float], Awaitable[ExecResult]]


class SimulatedStreams:
    def __init__(self, run: Run, script_of: Callable[[str], Script]) -> None:
        """`run`: the runtime's exec_sync; `script_of`: of a sandbox, raises RuntimeFailure."""
        self._run, self._script_of = run, script_of

    async def exec(self, container_id: str, options: StreamOptions, request: Request) -> Reply:
        result = await self._run(container_id, options.command, PLAY_SECONDS)

        async def session(client: Channels) -> None:
            outputs = (
                (STDOUT, result.stdout, options.stdout),
                (STDERR, result.stderr, options.stderr),
            )
            for channel, text, is_wanted in outputs:
                if text and is_wanted:
                    await client.send(channel, text)
            await client.finish(orjson.dumps(exit_status(result.exit_code)))

        return upgrade(request, options, session)

    async def attach(self, container_id: str, options: StreamOptions, request: Request) -> Reply:
        raise RuntimeFailure("a simulated container cannot be attached to")

    async def port_forward(self, sandbox_id: str, request: Request) -> Reply:
        return port_forward.upgrade(request, partial(connect, self._script_of(sandbox_id)))
