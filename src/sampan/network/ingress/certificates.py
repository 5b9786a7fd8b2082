"""Which certificate a client is shown: that of the Secret for the name it asks for.

Job: a server name → a TLS context, made of a Secret when it is first needed.
Invariant: a handshake never fails for want of a Secret: who asks for another name, or for one whose
    Secret is missing or broken, is shown the certificate of the controller itself.
Invariant: there are as many contexts as Secrets that Ingresses and Gateways name.
Owner: the ingress controller.
"""

import base64
import binascii
import ssl
from collections.abc import Callable
from typing import Protocol

from sampan.api.objects import Obj
from sampan.core.tls import named_server_context, server_context_of
from sampan.network.ingress.routing import host_of

TLS_SECRET = "kubernetes.io/tls"
_Pair = tuple[str, str]  # as the Secret has it, in base64


class Names(Protocol):
    def secret_for(self, server_name: str) -> str | None:
        """The key of the Secret whose certificate a client is shown that asks for this name."""

    def secret_keys(self) -> frozenset[str]: ...


class Certificates:
    def __init__(
        self,
        table: Callable[[], Names],
        secret: Callable[[str], Obj | None],
        default: Callable[[], ssl.SSLContext],
    ) -> None:
        """`secret`: by its key; `default`: what is shown else, asked for once."""
        self._table, self._secret, self._default = table, secret, default
        self._shown_else: ssl.SSLContext | None = None
        self._contexts: dict[str, tuple[_Pair, ssl.SSLContext | None]] = {}

    def context(self) -> ssl.SSLContext:
        """For a listener: which certificate, is decided when the client has named a server."""
        return named_server_context(self._context_for)

    def _context_for(self, name: str) -> ssl.SSLContext:
        key = self._table().secret_for(host_of(name))
        secret = None if key is None else self._secret(key)
        if key is not None and secret is not None:
            found = self._made_of(key, secret)
            if found is not None:
                return found
        if self._shown_else is None:
            self._shown_else = self._default()
        return self._shown_else

    def _made_of(self, key: str, secret: Obj) -> ssl.SSLContext | None:
        data = secret.get("data") or {}
        pair = data.get("tls.crt") or "", data.get("tls.key") or ""
        known = self._contexts.get(key)
        if known is None or known[0] != pair:
            for gone in self._contexts.keys() - self._table().secret_keys():
                del self._contexts[gone]
            made = context_of(secret)
            known = self._contexts[key] = pair, None if isinstance(made, str) else made
        return known[1]


def context_of(secret: Obj) -> ssl.SSLContext | str:
    """Or why there is none."""
    data = secret.get("data") or {}
    try:
        pair = [base64.b64decode(data.get(name) or "", validate=True)
                for name in ("tls.crt", "tls.key")]  # fmt: skip
    except binascii.Error:
        return "its data is not base64"
    if not all(pair):
        return "tls.crt or tls.key is empty"
    try:
        return server_context_of(pair[0], pair[1])
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        return "tls.crt and tls.key are no certificate with its key"
