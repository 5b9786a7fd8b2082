"""exec, attach and port-forward of containers that no other streaming server knows.

Job: a container or sandbox and the client's request → the answer that takes the connection over.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from sampan.core.http.messages import Reply, Request
from sampan.kubelet.contracts.local_streams import StreamOptions
from sampan.kubelet.native.streams.pod_ports import connect_inside
from sampan.kubelet.native.streams.remote_command import AttachSession, ExecSession
from sampan.kubelet.streams import channels, port_forward
from sampan.kubelet.streams.channels import Channels
from sampan.runtime.spawn import Launch


class Containers(Protocol):
    """All raise RuntimeFailure."""

    def exec_call(
        self, container_id: str, command: Sequence[str], *, terminal: bool
    ) -> tuple[Launch, Path, Callable[[], None]]:
        """The call, the file that its pid will be in, and what to do when it is over."""

    def running_container(self, container_id: str) -> Path:
        """Its directory."""

    def closes_stdin(self, container_id: str) -> bool:
        """Has its input ended when the first client's has?"""

    def network_namespace(self, sandbox_id: str) -> str: ...


class NativeStreams:
    def __init__(self, containers: Containers) -> None:
        self._containers = containers

    async def exec(self, container_id: str, options: StreamOptions, request: Request) -> Reply:
        self._containers.running_container(container_id)

        async def session(client: Channels) -> None:
            launch, pid_file, forget = self._containers.exec_call(
                container_id, options.command, terminal=options.tty
            )
            try:
                await ExecSession(launch, pid_file, options).run(client)
            finally:
                forget()

        return channels.upgrade(request, options, session)

    async def attach(self, container_id: str, options: StreamOptions, request: Request) -> Reply:
        place = self._containers.running_container(container_id)
        stdin_once = self._containers.closes_stdin(container_id)
        session = AttachSession(place, options, stdin_once=stdin_once)
        return channels.upgrade(request, options, session.run)

    async def port_forward(self, sandbox_id: str, request: Request) -> Reply:
        namespace = self._containers.network_namespace(sandbox_id)
        return port_forward.upgrade(request, partial(connect_inside, namespace))
