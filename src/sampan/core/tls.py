"""TLS contexts for both sides: 1.2 and newer, HTTP/1.1 only, certificates always checked.

Job: build `ssl.SSLContext`s from files or PEM text; no policy beyond that.
Invariant: a client certificate that the server let in was signed by `client_ca_path`.
"""

import os
import ssl
from collections.abc import Callable

Path = str | os.PathLike[str]
ALPN = ["http/1.1"]


def server_context(
    cert_path: Path,
    key_path: Path,
    client_ca_path: Path | None = None,
    *,
    require_client_cert: bool = False,
) -> ssl.SSLContext:
    """Client certificates are asked for when there is a CA to check them with. Whoever shows none
    is let in all the same (unless required); a *bad* one fails the handshake, so no handler ever
    sees it, and the client sees a TLS alert rather than a 401."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    # Go's and Python's clients never resume a session: tickets cost a third of each handshake.
    context.num_tickets = 0
    context.load_cert_chain(cert_path, key_path)
    if client_ca_path is not None:
        context.load_verify_locations(client_ca_path)
        context.verify_mode = ssl.CERT_REQUIRED if require_client_cert else ssl.CERT_OPTIONAL
    elif require_client_cert:
        raise ValueError("client certificates are required, but there is no CA to check them with")
    return context


def server_context_of(cert: bytes, key: bytes) -> ssl.SSLContext:
    """Of PEM text, as Secrets carry it; asks for no client certificate. Raises OSError or
    ValueError where they are no pair."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)
    _load_pair(context, cert, key)
    return context


def named_server_context(context_for: Callable[[str], ssl.SSLContext]) -> ssl.SSLContext:
    """For a listener with several certificates: which one is shown, `context_for` says when the
    client has named a server ("" where it names none)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _harden(context)  # what the other context adds is its certificate alone

    def choose(connection: ssl.SSLObject, name: str | None, _context: object) -> None:
        connection.context = context_for(name or "")

    context.sni_callback = choose
    return context


def client_context(
    *,
    ca_path: Path | None = None,
    ca_data: str | bytes | None = None,
    cert_path: Path | None = None,
    key_path: Path | None = None,
    pair_data: tuple[bytes, bytes] | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """Without a CA the system's are trusted. `*_data` is PEM, as kubeconfig files carry it; a pair
    is a certificate and its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _harden(context)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_path is None and ca_data is None:
        context.hostname_checks_common_name = False
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        text = ca_data.decode() if isinstance(ca_data, bytes) else ca_data
        context.load_verify_locations(cafile=ca_path, cadata=text)
    if cert_path is not None:
        context.load_cert_chain(cert_path, key_path)
    elif pair_data is not None:
        _load_pair(context, *pair_data)
    return context


def shown_chain(connection: ssl.SSLObject | ssl.SSLSocket) -> list[bytes]:
    """The certificates that the other side has shown, its own first, in DER; not checked."""
    if hasattr(connection, "get_unverified_chain"):  # Python 3.13
        found: list[bytes] = connection.get_unverified_chain()
        return found
    inner = getattr(connection, "_sslobj")  # noqa: B009  # not public before
    return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in inner.get_unverified_chain()]


def _harden(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(ALPN)


def _load_pair(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """OpenSSL's loader takes files only: one in memory, of this process, for this moment; where
    the system has none, one that nobody else can read."""
    if hasattr(os, "memfd_create") and os.path.exists("/proc/self/fd"):
        handle = os.memfd_create("pair.pem", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{handle}"
    else:
        import tempfile

        handle, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(cert + b"\n" + key)
            file.flush()
            # Without one it would ask whoever sits at the terminal.
            context.load_cert_chain(path, password=_no_password)
    finally:
        if not path.startswith("/proc/"):
            os.unlink(path)


def _no_password() -> bytes:
    raise ValueError("the key has a password")
