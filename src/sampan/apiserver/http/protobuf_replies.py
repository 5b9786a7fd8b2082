"""Answers in protobuf, for clients that take nothing else.

Job: an answer, a list, an error or a watch → the bytes of its messages. Custom resources have no
    such form but for their metadata, and are refused with 406 as upstream.
"""

from collections.abc import Sequence

from sampan.api import convert
from sampan.api.calls import Answer, Event, ListAnswer
from sampan.api.errors import ApiError, NotAcceptable
from sampan.api.objects import Obj
from sampan.api.protobuf.writer import NotWritable, ProtobufWriter
from sampan.api.resources import Resource
from sampan.apiserver.http.negotiate import PROTOBUF, Form, list_head, partial
from sampan.apiserver.http.replies import error_reply, headers_of, in_list_shape, in_shape
from sampan.apiserver.http.watch_chunks import WatchChunks
from sampan.apiserver.watch.watch_stream import WatchStream
from sampan.core.http.messages import Response, Stream
from sampan.core.http.written_forms import JSON, YAML


class ProtobufReplies:
    def __init__(self, writer: ProtobufWriter) -> None:
        self._writer = writer

    def answer(self, answer: Answer | ListAnswer, resource: Resource, form: Form) -> Response:
        """Raises NotAcceptable."""
        code = answer.code if isinstance(answer, Answer) else 200
        if isinstance(answer, ListAnswer):
            obj = in_list_shape(answer, form) if form.shape else _list(answer)
        else:
            is_status = answer.obj.get("kind") == "Status"
            shaped = form.shape and not is_status
            obj = in_shape(answer.obj, resource, form, 0.0) if shaped else answer.obj
        try:
            body = self._writer.object_bytes(obj)
        except NotWritable as error:
            raise _not_offered() from error
        return Response(code, headers_of(PROTOBUF, answer.warnings), body)

    def error(self, error: ApiError) -> Response:
        reply = error_reply(error)
        headers = [
            (name, PROTOBUF if name == "content-type" else text) for name, text in reply.headers
        ]
        return Response(reply.status, headers, self._writer.object_bytes(error.status()))

    def watch(self, watching: WatchStream, resource: Resource, form: Form) -> Stream:
        """Raises NotAcceptable."""
        is_whole = not form.shape
        if form.shape == "PartialObjectMetadataList" or (is_whole and resource.custom is not None):
            watching.close()
            raise _not_offered()
        headers = headers_of(f"{PROTOBUF};stream=watch", watching.warnings)
        version = "" if is_whole else form.version
        frames = _Frames(self._writer, resource, version)
        return Stream(200, headers, WatchChunks(watching, frames))


class _Frames:
    """Events in protobuf, each with its length before it."""

    def __init__(self, writer: ProtobufWriter, resource: Resource, version: str) -> None:
        """`version`: of meta.k8s.io, where only the objects' metadata is wanted."""
        self._writer, self._resource, self._version = writer, resource, version

    def events(self, events: Sequence[Event]) -> bytes:
        return b"".join([self._frame(event) for event in events])

    def error(self, status: Obj) -> bytes:
        return self._writer.event_frame("ERROR", status)

    def _frame(self, event: Event) -> bytes:
        obj = event.item.obj
        if self._resource.stored_in != ("", "") and event.type != "BOOKMARK":
            obj = convert.from_stored(self._resource, obj)
        if self._version:
            obj = partial(obj, self._version)
        return self._writer.event_frame(event.type, obj)


def _list(answer: ListAnswer) -> Obj:
    resource = answer.resource
    head = list_head(
        resource.list_kind, resource.api_version, answer.revision, answer.continue_token,
        answer.remaining,
    )  # fmt: skip
    items = [item.obj for item in answer.items]
    if resource.stored_in != ("", ""):
        items = [convert.from_stored(resource, obj) for obj in items]
    return {**head, "items": items}


def _not_offered() -> NotAcceptable:
    return NotAcceptable(f"only the following media types are accepted: {JSON}, {YAML}")
