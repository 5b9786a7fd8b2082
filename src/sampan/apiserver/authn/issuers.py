"""The issuers of tokens from outside: several, and exchangeable while the server runs.

Job: find the one that a token names.
Owner: Authentication; a reload replaces all of them at once.
"""

from collections.abc import Sequence

from sampan.apiserver.authn.jwt import BadToken, parse
from sampan.apiserver.authn.oidc import Oidc
from sampan.apiserver.authn.settings import OidcSettings
from sampan.apiserver.authn.user import User
from sampan.core.clock import Clock


class Issuers:
    def __init__(self, settings: Sequence[OidcSettings], clock: Clock) -> None:
        """Raises ValueError where an expression cannot be compiled."""
        self._clock = clock
        self._issuers = [Oidc(setting, clock) for setting in settings]

    async def user(self, token: str) -> User | None:
        """None: nobody here has issued it. Raises BadToken."""
        if token.count(".") != 2:
            return None
        try:
            jwt = parse(token)
        except BadToken:
            return None  # somebody else may know what it is
        for issuer in self._issuers:
            if issuer.issued(jwt):
                return await issuer.user(jwt)
        return None

    async def replace(self, settings: Sequence[OidcSettings]) -> None:
        """Raises ValueError, and changes nothing then."""
        made = [Oidc(setting, self._clock) for setting in settings]
        former, self._issuers = self._issuers, made
        for item in former:
            await item.close()

    async def close(self) -> None:
        for issuer in self._issuers:
            await issuer.close()
