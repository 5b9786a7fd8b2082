"""From the server's options to the chain of authenticators.

Job: build what the settings ask for, and nothing else; only that is loaded.
"""

from dataclasses import replace

from sampan.apiserver.authn.chain import Authenticators
from sampan.apiserver.authn.page_sessions import PageSessions
from sampan.apiserver.authn.tokens import Signer, TokenSigner
from sampan.apiserver.outside.webhook_client import Caller
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import Clock
from sampan.core.metrics import Metrics


def token_signer(settings: ApiServerSettings, clock: Clock, metrics: Metrics) -> Signer | None:
    issuers, most = (
        (settings.token_issuer, *settings.token_other_issuers),
        settings.token_max_seconds,
    )
    if settings.token_signing_endpoint:
        from sampan.apiserver.authn.external_signer import ExternalSigner

        return ExternalSigner(settings.token_signing_endpoint, issuers, most, clock, metrics)
    key = settings.token_signing_key_pem
    if not key:
        return None
    return TokenSigner(key, issuers[0], settings.token_other_keys_pem, issuers[1:], most)


def authenticators(
    settings: ApiServerSettings, signer: Signer | None, callers: list[Caller], clock: Clock
) -> Authenticators:
    """What calls others is added to `callers`, to be closed with the server. Raises ValueError."""
    found = Authenticators(
        signer=signer,
        bootstrap_tokens=settings.bootstrap_tokens,
        anonymous_paths=settings.anonymous_paths,
        sessions=PageSessions(clock) if settings.page else None,
    )
    if settings.token_file:
        from sampan.apiserver.authn.token_file import TokenFile

        found = replace(found, token_file=TokenFile(settings.token_file))
    if settings.oidc or settings.authentication_config is not None:
        from sampan.apiserver.authn.issuers import Issuers

        config = settings.authentication_config
        more = config.now().issuers if config is not None else ()
        found = replace(found, issuers=Issuers((*settings.oidc, *more), clock))
    if settings.token_webhook is not None:
        from sampan.apiserver.authn.webhook import TokenWebhook

        callers.append(Caller(settings.token_webhook))
        webhook = TokenWebhook(callers[-1], settings.token_webhook_seconds, clock)
        found = replace(found, webhook=webhook)
    return _with_proxy(settings, found)


def _with_proxy(settings: ApiServerSettings, found: Authenticators) -> Authenticators:
    proxy = settings.front_proxy
    if proxy is None:
        return found
    if not settings.client_ca_pem:
        raise ValueError("an authenticating proxy needs the users' own CA to be told apart")
    from sampan.apiserver.authn.front_proxy import FrontProxy, Issued

    return replace(found, front_proxy=FrontProxy(proxy), is_client=Issued(settings.client_ca_pem))
