"""Answers as HTTP: objects, lists, watches and errors in the form that the client asked for.

Job: join bytes that exist, make those that do not, put the headers around them.
Invariant: an error is always a Status.
"""

import asyncio
from collections.abc import Sequence

import orjson

from sampan.api import convert
from sampan.api.calls import Answer, Event, Item, ListAnswer
from sampan.api.errors import ApiError, Failure, NotAcceptable, UnknownGroup, Unserved
from sampan.api.go_text import internal_type
from sampan.api.objects import Obj, meta_of
from sampan.api.resources import Resource
from sampan.apiserver.http.negotiate import (
    PLAIN,
    PROTOBUF,
    Form,
    ListPieces,
    encoded,
    gzip_bytes,
    gzip_wanted,
    list_head,
    partial,
    type_bytes,
    untyped,
)
from sampan.apiserver.http.watch_chunks import WatchChunks
from sampan.apiserver.printers.table import TableForm, table_of
from sampan.apiserver.watch.watch_stream import WatchStream
from sampan.core.clock import Clock
from sampan.core.http.messages import STEP_BYTES, Response, Stream
from sampan.core.http.written_forms import JSON, YAML

MOST_WARNED, MOST_WARNING = 4096, 256  # characters: of all warnings, of one where that is too much
_JSON = ("content-type", JSON)
_CACHE = ("cache-control", "no-cache, private")
_PLAIN = (_CACHE, _JSON)
# What the scale subresource gives, of kinds of the API and of custom ones.
_SCALES = Resource("autoscaling", "v1", "Scale", "scales")
_CUSTOM_SCALES = Resource("autoscaling", "v1", "Scale", "customscales")
_PLAIN_TEXT = (
    _CACHE,
    ("content-type", "text/plain; charset=utf-8"),
    ("x-content-type-options", "nosniff"),
)


def answer_reply(answer: Answer, resource: Resource, form: Form, now: float) -> Response:
    obj, data = answer.obj, answer.data
    if form.shape and obj.get("kind") != "Status":
        obj, data = in_shape(obj, resource, form, now), None
    if data is None or form.media == YAML or form.pretty:
        data = encoded(obj, form)
    else:
        data += b"\n"
    headers = (
        _PLAIN if form == PLAIN and not answer.warnings else headers_of(form.media, answer.warnings)
    )
    return Response(answer.code, headers, data)


def in_shape(obj: Obj, resource: Resource, form: Form, now: float) -> Obj:
    match form.shape:
        case "PartialObjectMetadata":
            return partial(obj, form.version)
        case "Table":
            head = _table_head(obj)
            if obj.get("kind") == "Scale":
                resource = _SCALES if resource.custom is None else _CUSTOM_SCALES
            return table_of(resource, [obj], now, TableForm(form.include, form.version), head)
    if resource.custom is not None:
        raise Failure("content is not a list")
    raise NotAcceptable(
        f"you requested {form.shape}, but the requested object is not a list "
        f"(*{internal_type(resource.group, resource.kind)})"
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
        what = f"*{internal_type(resource.group, resource.list_kind)}"
        if resource.custom is not None:
            what = "*unstructured.UnstructuredList"
        raise NotAcceptable(
            f"you requested PartialObjectMetadata, but the requested object is a list ({what})"
        )


def list_reply(answer: ListAnswer, form: Form, now: float) -> Response:
    resource = answer.resource
    _refuse_shape_of_one(resource, form)
    headers = headers_of(form.media, answer.warnings)
    items: Sequence[Item] = answer.items
    if resource.stored_in != ("", ""):
        items = [_item(convert.from_stored(resource, item.obj)) for item in items]
    if form.shape:
        return Response(200, headers, encoded(_shaped_list(answer, items, form, now), form))
    head = _head_of(answer, resource.list_kind, resource.api_version)
    if resource.custom is not None:
        head["metadata"].setdefault("continue", "")  # as upstream's untyped lists have it
        start = b"{"
    else:
        start = type_bytes(resource.api_version, resource.kind)
    if form.media == YAML or form.pretty:
        shown = [item.obj if start == b"{" else untyped(item.obj) for item in items]
        return Response(200, headers, encoded({**head, "items": shown}, form))
    pieces = ListPieces(head, items, start)
    if pieces.about_bytes > STEP_BYTES:
        return Response(200, headers, pieces=pieces)
    return Response(200, headers, b"".join(pieces))


def _head_of(answer: ListAnswer, kind: str, api_version: str) -> Obj:
    return list_head(kind, api_version, answer.revision, answer.continue_token, answer.remaining)


def _shaped_list(answer: ListAnswer, items: Sequence[Item], form: Form, now: float) -> Obj:
    """A table, or the metadata of all."""
    head = _head_of(answer, "PartialObjectMetadataList", f"meta.k8s.io/{form.version}")
    if form.shape != "Table":
        return {**head, "items": [partial(item.obj, form.version) for item in items]}
    rows = (item.obj for item in items)
    how = TableForm(form.include, form.version)
    return table_of(answer.resource, rows, now, how, head["metadata"])


def object_reply(obj: Obj, code: int = 200) -> Response:
    return Response(code, _PLAIN, encoded(obj, PLAIN))


def shown_reply(obj: Obj) -> Response:
    """Written for people, whoever asks."""
    return Response(200, _PLAIN, encoded(obj, Form(pretty=True)))


def error_reply(error: ApiError, form: Form | None = PLAIN) -> Response:
    """`form`: None where the client takes nothing that an error can be told in."""
    if isinstance(error, UnknownGroup):
        return Response(404, _PLAIN_TEXT, b"404 page not found\n")
    if isinstance(error, Unserved):
        return Response(503, _PLAIN_TEXT, f"{error.message}\n".encode())
    form = form or Form(pretty=True)
    headers = headers_of(form.media, error.warnings)
    if error.retry_after_seconds is not None:
        headers.append(("retry-after", str(error.retry_after_seconds)))
    return Response(error.code, headers, encoded(error.status(), form))


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
        raise NotAcceptable(
            f"only the following media types are accepted: {JSON};stream=watch, "
            f"{PROTOBUF};stream=watch"
        )
    headers = headers_of(JSON, watching.warnings) if watching.warnings else _PLAIN
    return Stream(200, headers, WatchChunks(watching, _JsonLines(resource, form, clock)))


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
    """In the order of what is stored: its type first."""
    typed = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    return Item("", 0, obj, orjson.dumps({**typed, **obj}))


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
