"""Settings of authentication: plain values, from flags or a configuration file.

Job: the settings of authenticators; none of them is needed to write these down.
"""

import ssl
from collections.abc import Callable

from sampan.core.fast_dataclass import dataclass

# Anonymous callers may ask for these and for nothing else.
PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
# As upstream: whatever is asymmetric.
EVERY_ALGORITHM = tuple(f"{kind}{size}" for kind in ("RS", "ES", "PS") for size in (256, 384, 512))


@dataclass(frozen=True, slots=True)
class Checked:
    """A rule in CEL that must be true, and what is said where it is not."""

    expression: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """One issuer of JSON web tokens. Where there is an expression, it stands for the claim."""

    issuer: str
    audiences: tuple[str, ...]  # one of them must be the token's
    tls: Callable[[], ssl.SSLContext] | None = None
    username_claim: str = "sub"
    username_prefix: str = ""  # "-": none; empty: upstream's default
    groups_claim: str = ""
    groups_prefix: str = ""
    required_claims: tuple[tuple[str, str], ...] = ()
    algorithms: tuple[str, ...] = ("RS256",)
    discovery_url: str = ""  # where that is not below the issuer's own URL
    username_expression: str = ""
    groups_expression: str = ""
    uid_claim: str = ""
    uid_expression: str = ""
    extra: tuple[tuple[str, str], ...] = ()  # (key, expression)
    claim_rules: tuple[Checked, ...] = ()
    user_rules: tuple[Checked, ...] = ()


@dataclass(frozen=True, slots=True)
class FrontProxySettings:
    ca_pem: bytes
    allowed_names: tuple[str, ...] = ()  # none: any that the CA has signed
    user_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ("x-remote-uid",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class ProxyClientSettings:
    """Who this server is where it is the authenticating proxy: to aggregated API servers."""

    cert_path: str
    key_path: str
    ca_pem: str  # who signed the certificate: what those servers trust
    common_name: str
