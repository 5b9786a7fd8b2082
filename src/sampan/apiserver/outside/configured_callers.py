"""Webhook clients by clientConfig, as webhooks of every kind have one.

Job: clientConfig (url or service, caBundle) → a caller, kept as long as its configuration stands.
Invariant: a service is reached at one of its ready endpoints, and must prove the service's name.
Invariant: whoever has no caBundle is judged by the system's trust.
Invariant: connections to the same configuration and endpoint are shared.
Invariant: no more than MOST callers are kept, but for those that are asked right now.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable
from posixpath import normpath
from urllib.parse import quote, unquote, urlsplit

import orjson

from sampan.api.objects import Obj
from sampan.apiserver.outside.webhook_client import Caller, CallFailed, NotCallable, Target

# (service namespace, service name, port) → host and port to connect to. Raises CallFailed.
Resolve = Callable[[str, str, int], tuple[str, int]]
# Of a clientConfig and the seconds that its server has. May raise CallFailed.
BeforeCall = Callable[[Obj, float], Awaitable[None]]


MOST = 128


class ConfiguredCallers:
    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._callers: dict[str, Caller] = {}  # who was asked last is last
        self.before: BeforeCall | None = None

    def __len__(self) -> int:
        return len(self._callers)

    async def post(self, config: Obj, document: Obj, timeout_seconds: float) -> Obj:
        """Raises CallFailed."""
        if self.before is not None:
            await self.before(config, timeout_seconds)
        caller = self._caller(config, timeout_seconds)
        try:
            return await caller.post(document, timeout_seconds)
        finally:
            await self._drop_old()

    async def close(self) -> None:
        for caller in self._callers.values():
            await caller.close()

    def _caller(self, config: Obj, timeout_seconds: float) -> Caller:
        target = self._target(config, f"timeout={timeout_seconds:g}s")
        key = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + target.url
        caller = self._callers.pop(key, None) or Caller(target)
        self._callers[key] = caller
        return caller

    async def _drop_old(self) -> None:
        """Configurations change, and endpoints come and go: nobody asks some of them again."""
        surplus = len(self._callers) - MOST
        idle = [key for key, caller in self._callers.items() if caller.is_idle]
        for key in idle[: max(0, surplus)]:
            await self._callers.pop(key).close()

    def _target(self, config: Obj, query: str) -> Target:
        try:
            bundle = b64decode(config.get("caBundle") or "")
        except NotBase64 as error:
            raise NotCallable("the caBundle cannot be read") from error
        if config.get("url"):
            parts = urlsplit(config["url"])
            url = f"{parts.scheme}://{parts.netloc}{_path(parts.path)}?{query}"
            return Target(url, trust=bundle)
        service = config.get("service") or {}
        namespace, name = service.get("namespace") or "", service.get("name") or ""
        path = _path(service.get("path") or "")
        port = int(service.get("port") or 443)
        known_as = f"{name}.{namespace}.svc"
        named = f"https://{known_as}:{port}{path}?{query}"
        try:
            host, target_port = self._resolve(namespace, name, port)
        except CallFailed as error:
            raise CallFailed(f'Post "{named}": {error}') from error
        shown = f"[{host}]" if ":" in host else host
        url = f"https://{shown}:{target_port}{path}?{query}"
        return Target(url, trust=bundle, server_name=known_as, shown_url=named)


def _path(path: str) -> str:
    """As client-go joins paths: no double slashes, none at the end, no way up; envtest's URLs have
    two, which Go's own servers answer with a redirect."""
    return quote(normpath("/" + unquote(path).lstrip("/")), safe="/:@!$&'()*+,;=~")
