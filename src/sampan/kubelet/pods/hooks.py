"""Lifecycle hooks: postStart and preStop by exec, HTTP, TCP and sleep.

Job: run one postStart or preStop handler against a running container.
Invariant: a handler that cannot be run is a failure, never skipped in silence.
Owner: one per node.
"""

import json
from dataclasses import field

from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.core.clock import Clock
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.tls import client_context
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.kubelet.probes.http_check import headers_of


class HookFailure(Exception):
    """The handler failed, or there is no such handler here."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The container that a hook is about."""

    container: Obj  # of the spec
    id: str
    address: str  # of its pod
    pod: Obj = field(default_factory=dict)


def handler_of(container: Obj, moment: str) -> Obj | None:
    """`moment` is postStart or preStop."""
    handler: Obj | None = (container.get("lifecycle") or {}).get(moment)
    return handler


class Hooks:
    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._http: HttpClient | None = None  # made when the first hook needs it

    async def run(self, handler: Obj, subject: Subject, timeout_seconds: float) -> None:
        if "exec" in handler:
            await self._exec(handler["exec"], subject, timeout_seconds)
        elif "httpGet" in handler:
            await self._get(handler["httpGet"], subject, timeout_seconds)
        elif "sleep" in handler:
            seconds = float(handler["sleep"].get("seconds") or 0)
            await self._clock.sleep(min(seconds, timeout_seconds))
        else:
            kind = next(iter(handler), "none")
            raise HookFailure(f"hooks of type {kind} are not supported")

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _exec(self, action: Obj, subject: Subject, timeout_seconds: float) -> None:
        command = action.get("command") or []
        said = f"Exec lifecycle hook ([{' '.join(command)}]) {_about(subject)}"
        try:
            result = await self._runtime.exec_sync(subject.id, command, timeout_seconds)
        except RuntimeFailure as error:
            raise HookFailure(f'{said} failed - error: {error}, message: ""') from error
        if result.exit_code != 0:
            output = json.dumps((result.stdout + result.stderr).decode(errors="replace"))
            why = f"command '{' '.join(command)}' exited with {result.exit_code}: "
            raise HookFailure(f"{said} failed - error: {why}, message: {output}")

    async def _get(self, action: Obj, subject: Subject, timeout_seconds: float) -> None:
        """As upstream: any answer will do, whatever its code."""
        if self._http is None:
            # A pod's own certificate is nobody's to check.
            self._http = HttpClient(ssl_context=client_context(verify=False))
        try:
            await self._http.request(
                "GET",
                hook_url(action, subject),
                headers=headers_of(action, "kube-lifecycle"),
                timeout_seconds=timeout_seconds,
            )
        except HttpError as error:
            said = f"HTTP lifecycle hook ({action.get('path') or ''}) {_about(subject)}"
            raise HookFailure(f'{said} failed - error: {error}, message: ""') from error


def _about(subject: Subject) -> str:
    pod = subject.pod
    full = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
    return f'for Container "{subject.container.get("name", "")}" in Pod "{full}"'


def hook_url(action: Obj, subject: Subject) -> str:
    host = action.get("host") or subject.address
    if not host:
        raise HookFailure("the pod has no address")
    host = f"[{host}]" if ":" in host else host
    path = action.get("path") or "/"
    slash = "" if path.startswith("/") else "/"
    scheme = str(action.get("scheme") or "HTTP").lower()
    return f"{scheme}://{host}:{_port(action.get('port'), subject.container)}{slash}{path}"


def _port(wanted: object, container: Obj) -> int:
    """A number, or the name of one of the container's ports."""
    if is_digits(str(wanted or "")):
        return int(str(wanted))
    for port in container.get("ports") or ():
        if port.get("name") == wanted:
            return int(port["containerPort"])
    raise HookFailure(f"the container has no port {wanted}")
