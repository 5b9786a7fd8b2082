"""Get, list and watch: from the cache where its revision allows, from the store's past otherwise.

Job: resourceVersion and resourceVersionMatch, limit and continue.
Invariant: the pages of one list show one revision.
"""

import asyncio

from sampan.api.calls import Call, ListAnswer
from sampan.api.errors import BadRequest, Expired, Timeout
from sampan.api.objects import Obj
from sampan.apiserver.registry.continue_token import ContinueToken, decode_token, encode_token
from sampan.apiserver.registry.custom_resources import shown_item
from sampan.apiserver.registry.generic import Registry, api_error_of
from sampan.apiserver.registry.list_options import (
    check_list_options,
    revision_complaint,
    revision_number,
)
from sampan.apiserver.registry.pages import Found, Wanted, cached_page, stored_page
from sampan.apiserver.registry.selection import Selection
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
        return await _continue(registry, call, selection, decode_token(options.continue_token))
    revision = options.resource_version
    if revision and (wrong := revision_complaint(revision)):
        raise BadRequest(f"invalid resource version: {wrong}")
    exact = options.resource_version_match == "Exact" or (
        # As upstream: a limited list at a revision has always been an exact one.
        revision not in ("", "0") and options.limit > 0 and not options.resource_version_match
    )
    if exact:
        return await _page(registry, call, selection, ContinueToken(revision_number(revision), ""))
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


def shown_list(answer: ListAnswer, selection: Selection) -> ListAnswer:
    """In the version that was asked for, and selected by what that shows. Raises NotConverted."""
    if answer.resource.custom is not None:
        answer.items = [shown_item(answer.resource, item) for item in answer.items]
    if selection.shown is not None:
        answer.items = [item for item in answer.items if selection.shown(item.obj)]
        answer.remaining = None
    return answer


def _answer(call: Call, selection: Selection, found: Found, revision: int) -> ListAnswer:
    if not found.left:
        return ListAnswer(call.resource, found.items, revision)
    token = _token_of(call, revision, found.items[-1].key + "\0")
    # With a selector the rest is not counted, as upstream.
    remaining = found.left if selection.matches is None else None
    return ListAnswer(call.resource, found.items, revision, token, remaining)


def _token_of(call: Call, revision: int, key: str) -> str:
    """What it says is inside of the list's own namespace, whoever changes it."""
    inside = len(call.namespace) + 1 if call.namespace else 0
    return encode_token(ContinueToken(revision, key[inside:]))


async def _continue(
    registry: Registry, call: Call, selection: Selection, token: ContinueToken
) -> ListAnswer:
    if call.options.resource_version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    start = f"{call.namespace}/{token.start}" if call.namespace else token.start
    if token.revision < 0:
        await registry.cache.fresh()
        token = ContinueToken(registry.cache.revision, start)
    else:
        token = ContinueToken(token.revision, start)
    return await _page(registry, call, selection, token)


async def _page(
    registry: Registry, call: Call, selection: Selection, token: ContinueToken
) -> ListAnswer:
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
            raise ContinueExpired(_token_of(call, -1, token.start)) from error
        raise Expired("The resourceVersion for the provided list is too old.") from error
    except FutureRevision as error:
        raise _future(token.revision, registry.cache.revision) from error
    except StoreError as error:
        raise api_error_of(error) from error
    return _answer(call, selection, found, token.revision)


def _future(wanted: int, current: int) -> Timeout:
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Timeout(message, details={"causes": [cause]}, retry_after_seconds=1)
