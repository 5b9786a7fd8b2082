"""Get, list and watch: from the cache where its revision allows, from the store's past otherwise.

Job: resourceVersion and resourceVersionMatch, limit and continue.
Invariant: the pages of one list show one revision.
"""

import asyncio
import base64

import orjson

from sampan.api.calls import Call, ListAnswer
from sampan.api.errors import BadRequest, Expired, Timeout, invalid_value
from sampan.api.objects import Obj
from sampan.apiserver.registry.custom_resources import shown_item
from sampan.apiserver.registry.generic import Registry, api_error_of
from sampan.apiserver.registry.list_options import check_list_options, revision_number
from sampan.apiserver.registry.pages import Found, Wanted, cached_page, stored_page
from sampan.apiserver.registry.selection import Selection
from sampan.core.digits import all_digits
from sampan.core.fast_dataclass import dataclass
from sampan.store.contract import Compacted, FutureRevision, StoreError

FUTURE_WAIT_SECONDS = 3.0  # as upstream's cacher
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class ContinueExpired(Expired):
    """410 with a token that goes on at the newest revision, for who can live with that."""

    def __init__(self, token: str) -> None:
        super().__init__(_TOO_OLD)
        self.token = token

    def status(self) -> Obj:
        return {**super().status(), "metadata": {"continue": self.token}}


@dataclass(frozen=True, slots=True)
class _Token:
    revision: int  # -1: whatever is newest
    start: str


async def wait_for(registry: Registry, revision_text: str) -> None:
    """Until the cache is as new as a read with this resourceVersion must be."""
    if revision_text == "0":
        return
    if not revision_text:
        await registry.cache.fresh()
        return
    wanted = revision_number(revision_text)
    try:
        async with asyncio.timeout(FUTURE_WAIT_SECONDS):
            await registry.cache.reached(wanted)
    except TimeoutError as error:
        raise _future(wanted, registry.cache.revision) from error


async def list_of(registry: Registry, call: Call, selection: Selection) -> ListAnswer:
    options = call.options
    check_list_options(options, watch=False)
    if options.continue_token:
        return await _continue(registry, call, selection, _decode(options.continue_token))
    revision = options.resource_version
    if revision and not all_digits(revision):
        why = f'strconv.ParseUint: parsing "{revision}": invalid syntax'
        wrong = invalid_value("resourceVersion", revision, why)
        raise BadRequest(f"invalid resource version: {wrong}")
    exact = options.resource_version_match == "Exact" or (
        # As upstream: a limited list at a revision has always been an exact one.
        revision not in ("", "0") and options.limit > 0 and not options.resource_version_match
    )
    if exact:
        return await _page(registry, call, selection, _Token(revision_number(revision), ""))
    await wait_for(registry, revision)
    revision_then = registry.cache.revision
    wanted = _wanted(call, selection, "")
    found = await cached_page(registry.kind(call.resource), wanted)
    return _answer(call, selection, found, revision_then)


def _wanted(call: Call, selection: Selection, start: str) -> Wanted:
    limit = call.options.limit
    if call.options.resource_version == "0" and not call.options.continue_token:
        limit = 0  # as upstream's cache, which has it all at hand
    return Wanted(call.namespace, start, limit, selection.matches)


def shown_list(answer: ListAnswer) -> ListAnswer:
    """In the version that was asked for. Raises NotConverted."""
    if answer.resource.custom is not None:
        answer.items = [shown_item(answer.resource, item) for item in answer.items]
    return answer


def _answer(call: Call, selection: Selection, found: Found, revision: int) -> ListAnswer:
    if not found.left:
        return ListAnswer(call.resource, found.items, revision)
    token = _encode(_Token(revision, found.items[-1].key + "\0"))
    # With a selector the rest is not counted, as upstream.
    remaining = found.left if selection.matches is None else None
    return ListAnswer(call.resource, found.items, revision, token, remaining)


async def _continue(
    registry: Registry, call: Call, selection: Selection, token: _Token
) -> ListAnswer:
    if call.options.resource_version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    if token.revision < 0:
        await registry.cache.fresh()
        token = _Token(registry.cache.revision, token.start)
    return await _page(registry, call, selection, token)


async def _page(registry: Registry, call: Call, selection: Selection, token: _Token) -> ListAnswer:
    kind, wanted = registry.kind(call.resource), _wanted(call, selection, token.start)
    if kind.changed_revision <= token.revision <= registry.cache.revision:
        # Nothing of this kind has changed since: the cache is that moment's state.
        found = await cached_page(kind, wanted)
        return _answer(call, selection, found, token.revision)
    prefix = call.resource.storage_prefix
    try:
        found = await stored_page(registry.store, prefix, kind, wanted, token.revision)
    except Compacted as error:
        if token.start:
            raise ContinueExpired(_encode(_Token(-1, token.start))) from error
        raise Expired("The resourceVersion for the provided list is too old.") from error
    except FutureRevision as error:
        raise _future(token.revision, registry.cache.revision) from error
    except StoreError as error:
        raise api_error_of(error) from error
    return _answer(call, selection, found, token.revision)


def _not_json(text: str) -> str:
    """What Go's decoder says of a token that is none."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return "illegal base64 data at input byte 0"
    first = data[:1]
    if first == b"{" or not first:
        return "it was not made by this server"
    char = first.decode("latin-1")
    shown = char if char.isascii() and char.isprintable() else f"\\u{ord(char):04x}"
    return f"invalid character '{shown}' looking for beginning of value"


def _future(wanted: int, current: int) -> Timeout:
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Timeout(message, details={"causes": [cause]}, retry_after_seconds=1)


def _encode(token: _Token) -> str:
    data = {"v": "meta.k8s.io/v1", "rv": token.revision, "start": token.start}
    return base64.urlsafe_b64encode(orjson.dumps(data)).rstrip(b"=").decode()


def _decode(text: str) -> _Token:
    try:
        data = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        version, revision, start = data["v"], data["rv"], data["start"]
    except (ValueError, KeyError, TypeError) as error:
        why = _not_json(text)
        raise BadRequest(f"invalid continue token: continue key is not valid: {why}") from error
    if version != "meta.k8s.io/v1" or not isinstance(revision, int) or not isinstance(start, str):
        raise BadRequest("continue key is not valid: it was not made by this server")
    return _Token(revision, start)
