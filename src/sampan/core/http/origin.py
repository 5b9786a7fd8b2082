"""Origin of a request: its server, and a path on it.

Job: URLs in parts, so that nothing in a path can change which server is meant.
"""

from urllib.parse import urlsplit

from sampan.core.fast_dataclass import dataclass
from sampan.core.http.errors import HttpError


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: whom a connection leads to."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port, as a URL and a Host header have them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = self.port == (443 if self.scheme == "https" else 80)
        return host if standard else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in parts: nothing in `path` can change which server is meant."""

    origin: Origin
    path: str  # encoded, with its query

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


Url = str | Target


def split_url(url: Url) -> tuple[Origin, str]:
    if isinstance(url, Target):
        return url.origin, url.path
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise HttpError(f"not an HTTP URL: {url!r}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise HttpError(f"not an HTTP URL: {url!r}")
    target = parts.path or "/"
    if parts.query:
        target = f"{target}?{parts.query}"
    return Origin(parts.scheme, parts.hostname, port), target
