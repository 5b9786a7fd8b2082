"""Answers as HTTP: objects, lists, watches and errors in the form that the client asked for.

Job: join bytes that exist, make those that do not, put the headers around them.
Invariant: an error is always a Status.
"""

import asyncio
from collections.abc import Sequence

import orjson

from sampan.api import convert
from sampan.api.calls import Answer, Event, Item, ListAnswer
from sampan.api.errors import ApiError, Failure, NotAcceptable, UnknownPath, Unserved
from sampan.api.objects import Obj, meta_of
from sampan.api.resources import Resource
from sampan.apiserver.http.negotiate import (
    JSON,
    YAML,
    Form,
    ListPieces,
    gzip_bytes,
    gzip_wanted,
    list_head,
    partial,
    yaml_bytes,
)
from sampan.apiserver.http.watch_chunks import WatchChunks
from sampan.apiserver.printers.table import TableForm, table_of
from sampan.apiserver.watch.watch_stream import WatchStream
from sampan.core.clock import Clock
from sampan.core.http.messages import STEP_BYTES, Response, Stream

MOST_WARNED, MOST_WARNING = 4096, 256  # characters: of all warnings, of one where that is too much
_JSON = ("content-type", JSON)
_CACHE = ("cache-control", "no-cache, private")
_PLAIN = (_CACHE, _JSON)
_SCALES = Resource("autoscaling", "v1", "Scale", "scales")  # what the scale subresource gives
_PLAIN_TEXT = (
    _CACHE,
    ("content-type", "text/plain; charset=utf-8"),
    ("x-content-type-options", "nosniff"),
)


def answer_reply(answer: Answer, resource: Resource, form: Form, now: float) -> Response:
    if form.shape and answer.obj.get("kind") != "Status":
        shaped = in_shape(answer.obj, resource, form, now)
        return Response(answer.code, headers_of(JSON, answer.warnings), orjson.dumps(shaped))
    if form.media == YAML:
        return Response(answer.code, headers_of(YAML, answer.warnings), yaml_bytes(answer.obj))
    data = answer.data
    if form.pretty:
        data = orjson.dumps(answer.obj, option=orjson.OPT_INDENT_2)
    elif data is None:
        data = orjson.dumps(answer.obj)
    headers = _PLAIN if not answer.warnings else headers_of(JSON, answer.warnings)
    return Response(answer.code, headers, data)


def in_shape(obj: Obj, resource: Resource, form: Form, now: float) -> Obj:
    match form.shape:
        case "PartialObjectMetadata":
            return partial(obj, form.version)
        case "Table":
            head = _table_head(obj)
            if obj.get("kind") == "Scale":
                resource = _SCALES
            return table_of(resource, [obj], now, TableForm(form.include, form.version), head)
    if resource.custom is not None:
        raise Failure("content is not a list")
    raise NotAcceptable(
        f"you requested {form.shape}, but the requested object is not a list ({resource.kind})"
    )


def in_list_shape(answer: ListAnswer, form: Form) -> Obj:
    """The metadata of all objects. Raises NotAcceptable where it is asked for as if of one."""
    _refuse_shape_of_one(answer.resource, form)
    items = [partial(item.obj, form.version) for item in answer.items]
    kind, api_version = "PartialObjectMetadataList", f"meta.k8s.io/{form.version}"
    head = list_head(kind, api_version, answer.revision, answer.continue_token, answer.remaining)
    return {**head, "items": items}


def _refuse_shape_of_one(resource: Resource, form: Form) -> None:
    if form.shape == "PartialObjectMetadata":
        what = (
            "*unstructured.UnstructuredList" if resource.custom is not None else resource.list_kind
        )
        raise NotAcceptable(
            f"you requested PartialObjectMetadata, but the requested object is a list ({what})"
        )


def list_reply(answer: ListAnswer, form: Form, now: float) -> Response:
    resource = answer.resource
    kind, api_version = resource.list_kind, resource.api_version
    items: Sequence[Item] = answer.items
    _refuse_shape_of_one(resource, form)
    if resource.stored_in != ("", ""):
        items = [_item(convert.from_stored(resource, item.obj)) for item in items]
    if form.shape == "PartialObjectMetadataList":
        kind, api_version = "PartialObjectMetadataList", f"meta.k8s.io/{form.version}"
        items = [_item(partial(item.obj, form.version)) for item in items]
    head = list_head(kind, api_version, answer.revision, answer.continue_token, answer.remaining)
    if resource.custom is not None and not form.shape:
        head["metadata"].setdefault("continue", "")  # as upstream's untyped lists have it
    if form.shape == "Table":
        shown = (item.obj for item in items)
        how = TableForm(form.include, form.version)
        table = table_of(resource, shown, now, how, head["metadata"])
        return Response(200, headers_of(JSON, answer.warnings), orjson.dumps(table))
    if form.media == YAML:
        body = yaml_bytes({**head, "items": [item.obj for item in items]})
        return Response(200, headers_of(YAML, answer.warnings), body)
    if form.pretty:
        whole = {**head, "items": [item.obj for item in items]}
        body = orjson.dumps(whole, option=orjson.OPT_INDENT_2)
    else:
        pieces = ListPieces(head, items)
        if pieces.about_bytes > STEP_BYTES:
            return Response(200, headers_of(JSON, answer.warnings), pieces=pieces)
        body = b"".join(pieces)
    return Response(200, headers_of(JSON, answer.warnings), body)


def object_reply(obj: Obj, code: int = 200) -> Response:
    return Response(code, _PLAIN, orjson.dumps(obj))


def error_reply(error: ApiError) -> Response:
    if isinstance(error, UnknownPath):
        return Response(404, _PLAIN_TEXT, b"404 page not found\n")
    if isinstance(error, Unserved):
        return Response(503, _PLAIN_TEXT, f"{error.message}\n".encode())
    headers = headers_of(JSON, error.warnings)
    if error.retry_after_seconds is not None:
        headers.append(("retry-after", str(error.retry_after_seconds)))
    return Response(error.code, headers, orjson.dumps(error.status()))


async def compress(reply: Response, accept_encoding: str) -> Response:
    """Large answers are compressed, in a thread: others need not wait for it."""
    if not gzip_wanted(accept_encoding, reply.about_bytes()):
        return reply
    body = await asyncio.to_thread(lambda: gzip_bytes(reply.whole()))
    headers = [*reply.headers, ("content-encoding", "gzip"), ("vary", "Accept-Encoding")]
    return Response(reply.status, headers, body)


def watch_reply(watching: WatchStream, resource: Resource, form: Form, clock: Clock) -> Stream:
    if form.shape == "PartialObjectMetadataList" or form.media == YAML:
        watching.close()
        raise NotAcceptable("watches are offered as application/json only")
    return Stream(200, _PLAIN, WatchChunks(watching, _JsonLines(resource, form, clock)))


class _JsonLines:
    """Events as lines of JSON, in the form that was asked for."""

    def __init__(self, resource: Resource, form: Form, clock: Clock) -> None:
        self._resource, self._form, self._clock = resource, form, clock
        self._plain = not form.shape and resource.stored_in == ("", "")
        self._columns_sent = False

    def events(self, events: Sequence[Event]) -> bytes:
        if self._plain:
            return b"".join([event.line for event in events])
        return b"".join([self._line(event) for event in events])

    def error(self, status: Obj) -> bytes:
        return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"

    def _line(self, event: Event) -> bytes:
        obj = event.item.obj
        is_bookmark = event.type == "BOOKMARK"
        if self._resource.stored_in != ("", "") and not is_bookmark:
            obj = convert.from_stored(self._resource, obj)
        if self._form.shape == "PartialObjectMetadata":
            obj = partial(obj, self._form.version)
        elif self._form.shape == "Table":
            obj = self._table(obj, is_bookmark)
        return orjson.dumps({"type": event.type, "object": obj}) + b"\n"

    def _table(self, obj: Obj, is_bookmark: bool) -> Obj:
        """One row per event; the columns come with the first one only."""
        with_columns, self._columns_sent = not self._columns_sent, True
        return table_of(
            self._resource,
            [] if is_bookmark else [obj],
            self._clock.now(),
            TableForm(self._form.include, self._form.version, with_columns),
            _bookmark_head(obj) if is_bookmark else _table_head(obj),
        )


def _table_head(obj: Obj) -> Obj:
    return {"resourceVersion": str(meta_of(obj).get("resourceVersion") or "")}


def _bookmark_head(obj: Obj) -> Obj:
    annotations = meta_of(obj).get("annotations")
    head = _table_head(obj)
    return {**head, "annotations": annotations} if annotations else head


def _item(obj: Obj) -> Item:
    return Item("", 0, obj, orjson.dumps(obj))


def headers_of(media: str, warnings: Sequence[str]) -> list[tuple[str, str]]:
    headers = [_CACHE, ("content-type", media)]
    for text in bounded_warnings(warnings):
        plain = "".join(item if item.isprintable() else " " for item in text)
        escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
        headers.append(("warning", f'299 - "{escaped}"'))
    return headers


def bounded_warnings(warnings: Sequence[str]) -> list[str]:
    """As upstream's recorder: each once; where all of them are too long each is cut, and then the
    last ones go: whoever reads the answer bounds its head."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) <= MOST_WARNED:
        return texts
    kept: list[str] = []
    left = MOST_WARNED
    for text in texts:
        cut = text[:MOST_WARNING]
        if len(cut) > left:
            break
        kept.append(cut)
        left -= len(cut)
    return kept
