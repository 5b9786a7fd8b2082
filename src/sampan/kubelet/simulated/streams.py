"""exec in simulated containers: what a command does is scripted, its client is real.

Job: run the scripted command, then write what it said and how it ended to the client's channels.
Invariant: what the client writes is read and means nothing.
"""

from collections.abc import Awaitable, Callable, Sequence

import orjson

from sampan.core.http.messages import Reply, Request
from sampan.kubelet.contracts.local_streams import StreamOptions, exit_status
from sampan.kubelet.contracts.runtime import ExecResult, RuntimeFailure
from sampan.kubelet.streams.channels import STDERR, STDOUT, Channels, upgrade

PLAY_SECONDS = 60.0  # more than any script takes

Run = Callable[[str, Sequence[str], float], Awaitable[ExecResult]]


class SimulatedStreams:
    def __init__(self, run: Run) -> None:
        """`run`: the runtime's exec_sync."""
        self._run = run

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
        raise RuntimeFailure("a simulated pod has no ports")
