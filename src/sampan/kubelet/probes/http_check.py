"""The HTTP probe: one GET, with upstream's rules for headers, redirects and success.

Job: a probe's httpGet → a Target (pure); a Target → a Finding.
Invariant: a redirect is followed only on the host that the probe names, ten times at most.
"""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from sampan.api import features
from sampan.api.objects import Obj
from sampan.core.digits import is_digits
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError, HttpTimeout
from sampan.core.http.failure_words import NO_TLS, PLAIN_ANSWER
from sampan.core.http.messages import Headers
from sampan.kubelet.probes.finding import OUTPUT_BYTES, Finding, Probed, ProbeError

MOST_REDIRECTS = 10
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    headers: tuple[tuple[str, str], ...]


def target_of(action: Obj, about: Probed) -> Target:
    host = action.get("host") or about.address
    if not host:
        raise ProbeError("the pod has no address")
    scheme = str(action.get("scheme") or "HTTP").lower()
    path = action.get("path") or "/"
    slash = "" if path.startswith("/") else "/"
    shown = f"[{host}]" if ":" in host else host
    port = port_of(action.get("port"), about.container)
    url = f"{scheme}://{shown}:{port}{slash}{path}".replace(" ", "%20")
    return Target(url, tuple(headers_of(action, "kube-probe")))


def headers_of(action: Obj, agent: str) -> Headers:
    """As upstream: what the user names replaces ours, and an empty value leaves a header out."""
    given = [
        (str(header.get("name", "")).lower(), str(header.get("value", "")))
        for header in action.get("httpHeaders") or ()
    ]
    ours = {"user-agent": f"{agent}/{features.release().minor}", "accept": "*/*"}
    named = {name for name, _ in given}
    kept = [(name, value) for name, value in ours.items() if name not in named]
    unset = {"user-agent", "accept", "host"}
    said = [(name, value) for name, value in given if value or name not in unset]
    return [*kept, *said, ("connection", "close")]


def port_of(wanted: object, container: Obj) -> int:
    """A number, or the name of one of the container's ports. Raises ProbeError."""
    if is_digits(str(wanted or "")):
        return int(str(wanted))
    for port in container.get("ports") or ():
        if port.get("name") == wanted:
            return int(port["containerPort"])
    raise ProbeError(f'strconv.Atoi: parsing "{wanted}": invalid syntax')  # as upstream


async def get(target: Target, ssl_context: ssl.SSLContext, timeout_seconds: float) -> Finding:
    client = HttpClient(ssl_context=ssl_context, connect_seconds=timeout_seconds)
    first = target.url
    try:
        for _ in range(MOST_REDIRECTS):
            status, headers, body = await _ask(client, target, timeout_seconds)
            location = headers.get("location", "") if status in _REDIRECTS else ""
            there = urljoin(target.url, location)
            if not location or urlsplit(there).hostname != urlsplit(first).hostname:
                return finding_of(status, body, redirected=bool(location))
            target = replace(target, url=there)
        return Finding(False, f'Get "{target.url}": stopped after {MOST_REDIRECTS} redirects')
    except HttpTimeout:
        return Finding(
            False,
            f'Get "{target.url}": context deadline exceeded '
            "(Client.Timeout exceeded while awaiting headers)",
        )
    except (HttpError, ValueError) as error:
        return Finding(False, f'Get "{target.url}": {_why_no_answer(target, error)}')
    finally:
        await client.close()


async def _ask(
    client: HttpClient, target: Target, timeout_seconds: float
) -> tuple[int, Mapping[str, str], str]:
    answer = await client.stream(
        "GET", target.url, headers=target.headers, timeout_seconds=timeout_seconds
    )
    body = b""
    try:
        if answer.status not in _REDIRECTS:
            async for chunk in answer:
                body += chunk
                if len(body) >= OUTPUT_BYTES:
                    break
    finally:
        await answer.aclose()
    return answer.status, answer.headers, body[:OUTPUT_BYTES].decode(errors="replace")


def finding_of(status: int, body: str, *, redirected: bool) -> Finding:
    """`redirected`: it leads to another host, and is not followed."""
    if not 200 <= status < 400:
        return Finding(False, f"HTTP probe failed with statuscode: {status}")
    if redirected:
        return Finding(True, f"Probe terminated redirects, Response body: {body}", warning=True)
    return Finding(True, body)


def _why_no_answer(target: Target, error: Exception) -> str:
    if isinstance(error.__cause__, OSError):
        parts = urlsplit(target.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return why_no_connection(parts.hostname or "", port, error.__cause__)
    text = str(error)
    if "closed the connection" in text:
        return "EOF"
    if "Connection reset" in text:
        return "read: connection reset by peer"
    return text


def why_no_connection(host: str, port: int, error: Exception) -> str:
    """In the words of Go's net package."""
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    match error:
        case TimeoutError():
            return f"dial tcp {shown}: i/o timeout"
        case ConnectionRefusedError():
            return f"dial tcp {shown}: connect: connection refused"
        case OSError(errno=113):
            return f"dial tcp {shown}: connect: no route to host"
        case socket.gaierror():
            return f"dial tcp: lookup {host}: no such host"
        case ssl.SSLError(reason=why) if why in NO_TLS:
            return PLAIN_ANSWER
        case _:
            return f"dial tcp {shown}: {error}"
