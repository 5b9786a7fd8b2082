"""Probes of a real container: exec, HTTP, TCP and gRPC.

Job: one probe's action → a Finding, within its time.
Invariant: every connection is of its own and closed afterwards; nothing is kept between looks.
Owner: one per node.
"""

import asyncio
import ssl

from sampan.api.objects import Obj
from sampan.api.rules.durations import seconds_text
from sampan.core.tls import client_context
from sampan.kubelet.container_spec.environment import ConfigError, expand, program_room
from sampan.kubelet.contracts.runtime import CommandTimedOut, Runtime, RuntimeFailure
from sampan.kubelet.probes import http_check
from sampan.kubelet.probes.finding import OUTPUT_BYTES, Finding, Probed, ProbeError
from sampan.kubelet.probes.tally import Probe


class NodeCheck:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ssl: ssl.SSLContext | None = None  # made when the first probe needs it

    async def __call__(self, probe: Probe, about: Probed) -> Finding:
        action = probe.action
        if "exec" in action:
            return await self._command(action["exec"], probe, about)
        if "httpGet" in action:
            return await self._http(action["httpGet"], probe, about)
        if "tcpSocket" in action:
            return await _connects(action["tcpSocket"], probe, about)
        if "grpc" in action:
            # Only a node that probes this way pays for the library.
            from sampan.kubelet.probes.grpc_health import health

            port = int(action["grpc"]["port"])
            service = action["grpc"].get("service") or ""
            return await health(about.address, port, service, probe.timeout_seconds)
        raise ProbeError(f"missing probe handler for {about.container['name']}")

    async def _command(self, action: Obj, probe: Probe, about: Probed) -> Finding:
        # As upstream: with what the spec itself says; what is read from elsewhere is empty here.
        variables = {
            entry["name"]: entry.get("value") or "" for entry in about.container.get("env") or ()
        }
        room = program_room()
        try:
            words = action.get("command") or ()
            command = [expand(word, room, variables.get) for word in words]
        except ConfigError as error:
            raise ProbeError(str(error)) from error
        try:
            done = await self._runtime.exec_sync(about.id, command, probe.timeout_seconds)
        except CommandTimedOut:
            said = " ".join(command)
            limit = seconds_text(probe.timeout_seconds)
            return Finding(False, f'command timed out: "{said}" timed out after {limit}')
        except RuntimeFailure as error:
            raise ProbeError(str(error)) from error
        output = (done.stdout + done.stderr)[:OUTPUT_BYTES].decode(errors="replace")
        return Finding(done.exit_code == 0, output)

    async def _http(self, action: Obj, probe: Probe, about: Probed) -> Finding:
        if self._ssl is None:
            # As upstream: a pod's own certificate is nobody's to check.
            self._ssl = client_context(verify=False)
        target = http_check.target_of(action, about)
        return await http_check.get(target, self._ssl, probe.timeout_seconds)


async def _connects(action: Obj, probe: Probe, about: Probed) -> Finding:
    host = action.get("host") or about.address
    port = http_check.port_of(action.get("port"), about.container)
    try:
        async with asyncio.timeout(probe.timeout_seconds):
            _, writer = await asyncio.open_connection(host, port)
    except (TimeoutError, OSError) as error:
        return Finding(False, http_check.why_no_connection(host, port, error))
    writer.close()
    return Finding(True)
