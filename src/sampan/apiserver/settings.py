"""Settings of the API server: built in cmd/, frozen.

Job: names, ranges, keys and lifetimes as plain values with upstream's defaults.
"""

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from sampan.api.objects import Obj, annotations_of
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.audit.sinks import AuditFile
from sampan.apiserver.authn.settings import (
    PUBLIC_PATHS,
    FrontProxySettings,
    OidcSettings,
    ProxyClientSettings,
)
from sampan.apiserver.authz.settings import AuthorizerSettings, WebhookAuthorizerSettings
from sampan.apiserver.outside.followed_files import Source
from sampan.apiserver.outside.webhook_client import Target
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.origin import Origin
from sampan.core.ip_addresses import is_proxyable

if TYPE_CHECKING:
    from sampan.apiserver.authn.configuration import AuthenticationRules


@dataclass(frozen=True, slots=True)
class ApiServerSettings:
    service_cidrs: tuple[str, ...] = ("10.96.0.0/12",)  # one of each family, the main one first
    node_ports: range = range(30000, 32768)
    event_ttl_seconds: int = 3600
    # Where clients in the cluster find this server: the endpoints of the `kubernetes` service.
    advertise_address: str = "127.0.0.1"
    advertise_port: int = 6443
    hostname: str = ""  # of the machine: by it several servers on one store know each other
    # Service account tokens: who signs them, with what, and for whom.
    token_issuer: str = "https://kubernetes.default.svc.cluster.local"
    token_audiences: tuple[str, ...] = ("https://kubernetes.default.svc.cluster.local",)
    token_signing_key_pem: bytes = b""
    token_signing_endpoint: str = ""  # instead: the socket of a program that signs
    token_other_keys_pem: bytes = b""  # keys that signed before; they only verify
    token_other_issuers: tuple[str, ...] = ()
    token_max_seconds: int = 0  # 0: what is asked for
    token_extend: bool = True  # a pod's own token lasts longer than it says; its use is noted
    # The bundle in every namespace's kube-root-ca.crt.
    ca_bundle_pem: str = ""
    # How callers may say who they are, besides client certificates (docs/authentication.md).
    token_file: str = ""  # the file's text
    bootstrap_tokens: bool = False
    oidc: tuple[OidcSettings, ...] = ()
    authentication_config: "Source[AuthenticationRules] | None" = None  # followed
    token_webhook: Target | None = None
    token_webhook_seconds: float = 120.0
    front_proxy: FrontProxySettings | None = None
    client_ca_pem: bytes = b""  # needed beside front_proxy: who signs users, not proxies
    # How this server shows aggregated API servers that it speaks for its callers.
    proxy_client: ProxyClientSettings | None = None
    # Which addresses it may be sent to by what others wrote: pods, services, API servers.
    proxied_address: Callable[[str], bool] = is_proxyable
    anonymous_paths: frozenset[str] | None = PUBLIC_PATHS  # None: everywhere
    # Who decides what is allowed, in this order (authz/modes.py), and what some of them need.
    authorization_modes: tuple[str, ...] = ("Node", "RBAC")
    authorization_config: Source[tuple[AuthorizerSettings, ...]] | None = None  # instead; followed
    abac_policy: str = ""  # the file's text
    authorization_webhook: Target | None = None
    authorization_webhook_settings: WebhookAuthorizerSettings = field(
        default_factory=WebhookAuthorizerSettings
    )
    # What is noted of requests, and where; None: nothing.
    audit_policy: Obj | None = None
    audit_file: AuditFile | None = None
    audit_webhook: Target | None = None
    # Seats for requests at the same time, shared out by priority levels; 0: no flow control.
    request_seats: int = 600
    # An EncryptionConfiguration; None: values are stored as they are.
    encryption: Obj | None = None
    admission: AdmissionSettings = field(default_factory=AdmissionSettings)
    # Admission: mount a token into every pod. Off until nodes can mount projected volumes.
    mount_service_account_tokens: bool = False
    # How the server speaks to kubelets (logs, exec); None where there are none.
    kubelet_tls: Callable[[], ssl.SSLContext] | None = None
    # Where the kubelets of simulated nodes are found, whose addresses are made up.
    kubelet_place: Callable[[Origin], Awaitable[Origin]] | None = None
    # The annotations of an object, and what a scenario of simulated pods adds to them.
    scripts_of: Callable[[Obj], Mapping[str, str]] = annotations_of
    # Requests under way over HTTP at which more of them get 429; reads and writes apart.
    max_requests_in_flight: int = 400
    max_mutating_requests_in_flight: int = 200
    flags: Mapping[str, str] = field(default_factory=dict)  # of the process, for /flagz
    page: bool = True  # serve the page at /ui/
    watch_bookmark_seconds: float = 60.0
    watch_timeout_seconds: float = (
        1800.0  # at least; up to twice as long, so they do not end as one
    )
    watcher_buffer_events: int = 8192

    def authorizers(self) -> tuple[AuthorizerSettings, ...]:
        """The chain as the file has it, or else the flags. Raises ValueError."""
        if self.authorization_config is not None:
            return self.authorization_config.now()
        webhook = (self.authorization_webhook, self.authorization_webhook_settings)
        return tuple(AuthorizerSettings(mode, "", *webhook) for mode in self.authorization_modes)
