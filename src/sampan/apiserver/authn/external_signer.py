"""Tokens that another program signs: --service-account-signing-endpoint (ExternalJWTSigner v1).

Job: have a token's claims signed behind a unix socket, and keep the keys that it signs with.
Invariant: a header that says more than algorithm, key and type is refused, and so is a key that
    discovery does not show.
Invariant: while the signer does not answer, the keys that are known stay good.
Owner: of the keys; one task asks for them again when the signer has said so.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import orjson

from sampan.api.errors import InternalError
from sampan.api.go_quoting import quoted
from sampan.api.objects import Obj
from sampan.apiserver.authn.jwt import BadToken, base64url, from_base64url
from sampan.apiserver.authn.tokens import (
    Claims,
    SignerFailure,
    TokenChecker,
    UnknownKey,
    token_body,
)
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.grpc.plugin_calls import PluginCalls
from sampan.core.grpc.status_codes import GrpcFailure, code_name
from sampan.core.log import get_logger
from sampan.core.metrics import Metrics
from sampan.core.protobuf_wire import bytes_field, fields, text_of

if TYPE_CHECKING:
    from sampan.apiserver.authn.jwt_keys import VerifyingKey

SERVICE = "v1.ExternalJWTSigner"
KEYS_SECONDS, METADATA_SECONDS, SIGN_SECONDS = 60.0, 10.0, 60.0
AGAIN_SECONDS = 10.0  # after keys could not be fetched
LEAST_SECONDS = 600  # for which a token must be good
ALGORITHMS = ("RS256", "ES256", "ES384", "ES512")
_LONGEST_ID = 1024
_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PREFIX = "apiserver_externaljwt_"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class FetchedKeys:
    keys: tuple["VerifyingKey", ...]
    hidden: frozenset[str]  # ids of keys that only check, and that discovery does not show
    from_when: float
    again_seconds: int


def fetched_keys(answer: Sequence[tuple[int, bytes | int]]) -> FetchedKeys:
    """Raises SignerFailure."""
    by_number = {number: value for number, value in answer if number != 1}
    again = _signed(by_number.get(3) or 0)
    if again <= 0:
        raise SignerFailure(f"found invalid refresh hint ({again}s)")
    rows = [
        dict(fields(value)) for number, value in answer if number == 1 and isinstance(value, bytes)
    ]
    if not rows:
        raise SignerFailure("found no keys")
    data_from = by_number.get(2)
    if not isinstance(data_from, bytes):
        raise SignerFailure("invalid data timestamp: proto: invalid nil Timestamp")
    named = [(_key(row), bool(row.get(3))) for row in rows]
    hidden = frozenset(key.key_id for key, is_hidden in named if is_hidden)
    stamp = dict(fields(data_from))
    when = _signed(stamp.get(1) or 0) + _signed(stamp.get(2) or 0) / 1e9
    return FetchedKeys(tuple(key for key, _ in named), hidden, when, again)


def _key(row: dict[int, bytes | int]) -> "VerifyingKey":
    """Raises SignerFailure."""
    from sampan.apiserver.authn.jwt_keys import key_of_der  # with the first token

    key_id, der = text_of(row.get(1) or b""), row.get(2) or b""
    if not key_id or len(key_id.encode()) > _LONGEST_ID:
        raise SignerFailure(f"found invalid public key id {quoted(key_id)}")
    if not isinstance(der, bytes) or not der:
        raise SignerFailure("found empty public key")
    try:
        return key_of_der(der, key_id)
    except ValueError as error:
        raise SignerFailure(f"while parsing external public keys: {error}") from error


def _signed(value: bytes | int) -> int:
    number = value if isinstance(value, int) else 0
    return number - (1 << 64) if number >> 63 else number


def wrong_header(header: str, hidden: frozenset[str]) -> str:
    """What is wrong with the head of a token; empty: nothing."""
    try:
        found = orjson.loads(from_base64url(header))
    except ValueError as error:
        return f"while unwrapping header: {error}"
    if not isinstance(found, dict) or (more := set(found) - {"alg", "kid", "typ"}):
        named = (
            f"json: unknown field {quoted(min(more))}" if isinstance(found, dict) else "no object"
        )
        return f"while parsing header JSON: {named}"
    key_id = found.get("kid") or ""
    if found.get("typ") != "JWT":
        return "bad type"
    if not isinstance(key_id, str) or not key_id:
        return "key id missing"
    if len(key_id.encode()) > _LONGEST_ID:
        return "key id longer than 1 kb"
    if found.get("alg") not in ALGORITHMS:
        return f"bad signing algorithm {quoted(str(found.get('alg') or ''))}"
    if key_id in hidden:
        return f"key used for signing JWT (kid: {key_id}) is excluded from OIDC discovery docs"
    return ""


def _not_made(why: str) -> InternalError:
    return InternalError(f"Internal error occurred: failed to generate token: {why}")


class ExternalSigner:
    def __init__(
        self, endpoint: str, issuers: Sequence[str], most_seconds: int, clock: Clock,
        metrics: Metrics,
    ) -> None:  # fmt: skip
        """`most_seconds`: what this server allows; 0: what the signer does."""
        self.issuer, self.most_seconds = issuers[0], most_seconds
        self.longest_seconds = 0
        self._clock = clock
        self._plugin = PluginCalls(endpoint, SERVICE)
        self._checker = TokenChecker(issuers, self._candidates)
        self.issued, self.claims = self._checker.issued, self._checker.claims
        self._keys: FetchedKeys | None = None
        self._next_at = 0.0
        self._fetching = asyncio.Lock()
        self._measure = _Measure(metrics)

    async def start(self) -> None:
        """Raises SignerFailure."""
        try:
            await self._fetch(waits=True)
            metadata = dict(await self._call("Metadata", b"", METADATA_SECONDS))
        except (GrpcFailure, ValueError) as error:
            raise SignerFailure(f"while setting up external-jwt-signer: {error}") from error
        most = _signed(metadata.get(1) or 0)
        if most < LEAST_SECONDS:
            raise SignerFailure(f"max token life supported by external-jwt-signer ({most}s) is "
                                f"less than acceptable (min {LEAST_SECONDS}s)")  # fmt: skip
        if self.most_seconds > most:
            raise SignerFailure(
                "service-account-max-token-expiration cannot be set longer than the token "
                "expiration supported by service-account-signing-endpoint: "
                f"{self.most_seconds}s > {most}s"
            )
        self.most_seconds, self.longest_seconds = self.most_seconds or most, most

    async def keep_going(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(max(0.0, self._next_at - self._clock.monotonic()))
            try:
                await self.fetch_keys()
            except BadToken as error:
                log.warning("signing keys could not be fetched", error=error)
                self._next_at = self._clock.monotonic() + AGAIN_SECONDS

    async def close(self) -> None:
        await self._plugin.close()

    async def token(self, claims: Claims, now: float, token_id: str) -> str:
        """Raises InternalError."""
        payload = base64url(orjson.dumps(token_body(claims, self.issuer, int(now), token_id)))
        try:
            answer = await self._call("Sign", bytes_field(1, payload.encode()), SIGN_SECONDS)
            texts = {number: text_of(value) for number, value in answer}
            header, signature = texts.get(1, ""), texts.get(2, "")
            if wrong := wrong_header(header, self._keys.hidden if self._keys else frozenset()):
                raise SignerFailure(f"while validating header: {wrong}")
            if not signature:
                raise SignerFailure("empty signature returned")
        except GrpcFailure as error:
            self._measure.signed.add(code_name(error.code))
            raise _not_made(f"while signing jwt: {error}") from error
        except ValueError as error:
            self._measure.signed.add("unknown-non-grpc")
            raise _not_made(str(error)) from error
        self._measure.signed.add("OK")
        return f"{header}.{payload}.{signature}"

    async def fetch_keys(self) -> None:
        """Whoever comes while somebody asks waits for the same answer. Raises BadToken."""
        before = self._keys
        async with self._fetching:
            if self._keys is not before:
                return
            try:
                await self._fetch()
            except (GrpcFailure, ValueError) as error:
                raise BadToken(f"while fetching token verification keys: {error}") from error

    async def _fetch(self, *, waits: bool = False) -> None:
        code = "unknown-non-grpc"
        try:
            answer = await self._call("FetchKeys", b"", KEYS_SECONDS, waits=waits)
            found = fetched_keys(answer)
            code = "OK"
        except GrpcFailure as error:
            code = code_name(error.code)
            raise
        finally:
            self._measure.fetched.add(code)
        before, self._keys = self._keys, found
        self._next_at = self._clock.monotonic() + found.again_seconds
        self._measure.fetched_at.set(self._clock.now())
        self._measure.data_from.set(found.from_when)
        if before is not None:
            self._checker.forget()

    async def _call(
        self, method: str, request: bytes, seconds: float, *, waits: bool = False
    ) -> list[tuple[int, bytes | int]]:
        started, code = self._clock.monotonic(), "OK"
        try:
            return await self._plugin.call(method, request, seconds, waits=waits)
        except GrpcFailure as error:
            code = code_name(error.code)
            raise
        finally:
            self._measure.seconds.observe(
                self._clock.monotonic() - started, f"/{SERVICE}/{method}", code
            )

    def _candidates(self, key_id: str) -> Sequence["VerifyingKey"]:
        keys = () if self._keys is None else self._keys.keys
        found = [key for key in keys if key_id in ("", key.key_id)]
        if not found:
            raise UnknownKey("the token is signed with a key that is not known")
        return found

    def _shown(self) -> Iterator["VerifyingKey"]:
        if self._keys is not None:
            hidden = self._keys.hidden
            yield from (key for key in self._keys.keys if key.key_id not in hidden)

    @property
    def algorithms(self) -> list[str]:
        return sorted({key.jwk()["alg"] for key in self._shown()})

    def public_jwks(self) -> list[Obj]:
        return [key.jwk() for key in self._shown()]

    def keys_last_seconds(self) -> int:
        return max(0, int(self._next_at - self._clock.monotonic()))


class _Measure:
    def __init__(self, metrics: Metrics) -> None:
        self.signed = metrics.counter(
            f"{_PREFIX}sign_request_total", "Total attempts at signing JWT", ("code",)
        )
        self.fetched = metrics.counter(
            f"{_PREFIX}fetch_keys_request_total", "Total attempts at syncing supported JWKs",
            ("code",),
        )  # fmt: skip
        self.fetched_at = metrics.gauge(
            f"{_PREFIX}fetch_keys_success_timestamp",
            "Unix Timestamp in seconds of the last successful FetchKeys request",
        )
        self.data_from = metrics.gauge(
            f"{_PREFIX}fetch_keys_data_timestamp",
            "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value "
            "returned by the external signer",
        )
        self.seconds = metrics.histogram(
            f"{_PREFIX}request_duration_seconds",
            "Request duration and time for calls to external-jwt-signer",
            ("method", "code"),
            _BUCKETS,
        )
