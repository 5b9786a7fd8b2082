"""Lifecycle hooks: postStart and preStop by exec, HTTP, TCP and sleep.

Job: run one postStart or preStop handler against a running container.
Invariant: a handler that cannot be run is a failure, never skipped in silence.
Owner: one per node.
"""

import json
from dataclasses import field
from urllib.parse import urlsplit

from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.http.failure_words import PLAIN_ANSWER, failure_words
from sampan.core.http.messages import Headers
from sampan.core.tls import client_context
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.kubelet.probes.finding import ProbeError
from sampan.kubelet.probes.http_check import headers_of, port_of
from sampan.kubelet.status.recorder import PodEvents


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
    def __init__(self, runtime: Runtime, clock: Clock, events: PodEvents) -> None:
        self._runtime, self._clock, self._events = runtime, clock, events
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
        url, headers = hook_url(action, subject), headers_of(action, "kube-lifecycle")
        try:
            await self._http.request("GET", url, headers=headers, timeout_seconds=timeout_seconds)
        except HttpError as error:
            words = failure_words(error)
            if words == PLAIN_ANSWER and await self._get_plain(url, headers, timeout_seconds):
                where = urlsplit(url).netloc
                self._events.warning(
                    subject.pod,
                    "LifecycleHTTPFallback",
                    f"request to HTTPS lifecycle hook {where} got HTTP response, "
                    "retry with HTTP succeeded",
                )
                return
            said = f"HTTP lifecycle hook ({action.get('path') or ''}) {_about(subject)}"
            why = f'Get "{url}": {words}'
            raise HookFailure(f"{said} failed - error: {why}") from error

    async def _get_plain(self, url: str, headers: Headers, timeout_seconds: float) -> bool:
        """As upstream: a server without TLS is asked without it, and without credentials."""
        assert self._http is not None
        plain = url.replace("https:", "http:", 1)
        kept = [(name, value) for name, value in headers if name != "authorization"]
        try:
            await self._http.request("GET", plain, headers=kept, timeout_seconds=timeout_seconds)
        except HttpError:
            return False
        return True


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
    try:
        port = port_of(action.get("port"), subject.container)
    except ProbeError as error:
        raise HookFailure(str(error)) from error
    return f"{scheme}://{host}:{port}{slash}{path}"
