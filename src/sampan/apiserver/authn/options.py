"""From the server's options to the chain of authenticators.

Job: build what the settings ask for, and nothing else.
"""

from sampan.apiserver.authn.chain import Authenticators
from sampan.apiserver.authn.front_proxy import FrontProxy, Issued
from sampan.apiserver.authn.oidc import Oidc
from sampan.apiserver.authn.token_file import TokenFile
from sampan.apiserver.authn.tokens import TokenSigner
from sampan.apiserver.authn.webhook import TokenWebhook
from sampan.apiserver.outbound import Caller
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import Clock


def token_signer(settings: ApiServerSettings) -> TokenSigner | None:
    key = settings.token_signing_key_pem
    if not key:
        return None
    return TokenSigner(
        key, settings.token_issuer, settings.token_other_keys_pem, settings.token_other_issuers
    )


def authenticators(
    settings: ApiServerSettings, signer: TokenSigner | None, callers: list[Caller], clock: Clock
) -> Authenticators:
    """What calls others is added to `callers`, to be closed with the server."""
    webhook, proxy = None, settings.front_proxy
    if settings.token_webhook is not None:
        callers.append(Caller(settings.token_webhook))
        webhook = TokenWebhook(callers[-1], settings.token_webhook_seconds, clock)
    if proxy is not None and not settings.client_ca_pem:
        raise ValueError("an authenticating proxy needs the users' own CA to be told apart")
    return Authenticators(
        signer=signer,
        token_file=TokenFile(settings.token_file) if settings.token_file else None,
        bootstrap_tokens=settings.bootstrap_tokens,
        oidc=Oidc(settings.oidc, clock) if settings.oidc is not None else None,
        webhook=webhook,
        front_proxy=FrontProxy(proxy) if proxy is not None else None,
        is_client=Issued(settings.client_ca_pem) if proxy is not None else None,
        anonymous_paths=settings.anonymous_paths,
    )
