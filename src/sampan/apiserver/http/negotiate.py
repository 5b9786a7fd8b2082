"""Content negotiation: Accept and Content-Type.

Job: Accept → Form, Content-Type and bytes → JSON data, objects and lists → bytes.
Invariant: what a client does not accept is 406, what we cannot read is 415; nothing is guessed.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import orjson

from sampan.api.calls import Item
from sampan.api.errors import BadRequest, NotAcceptable, UnsupportedMediaType, invalid_value
from sampan.api.objects import Obj
from sampan.apiserver.printers.table import metadata_alone
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.accept import Clause, is_pretty, parse_accept
from sampan.core.http.messages import STEP_BYTES
from sampan.core.http.query import first_value
from sampan.core.http.written_forms import JSON, YAML, written

PROTOBUF = "application/vnd.kubernetes.protobuf"
MOST_REMEMBERED = 1024  # characters of an Accept header; kubectl sends 300
GZIP_FROM_BYTES = 128 * 1024
PATCH_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_INCLUDED = ("", "None", "Metadata", "Object")
REPRESENTED = (JSON, YAML, PROTOBUF)
LISTED = (*REPRESENTED, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_SHAPES = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_SHAPED = (("meta.k8s.io", "v1"), ("meta.k8s.io", "v1beta1"))


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is to look. `shape` is empty for the object itself."""

    media: str = JSON
    shape: str = ""
    version: str = ""  # of meta.k8s.io, for shapes
    include: str = ""  # of a table: which part of each object goes along
    pretty: bool = False


PLAIN = Form()
_MEDIA = ((JSON, "json"), (YAML, "yaml"), (PROTOBUF, "vnd.kubernetes.protobuf"))


@dataclass(frozen=True, slots=True)
class Offer:
    """What of a resource can be had."""

    has_protobuf: bool = True  # of the object itself: custom kinds have only metadata in it
    shapes: tuple[str, ...] = _SHAPES  # others than the object itself


OBJECT = Offer()
ANSWERED = Offer(shapes=_SHAPES[1:])  # asked and answered, and never stored: it has no table
CUSTOM = Offer(has_protobuf=False)
STATUS = Offer(shapes=())  # an error is what it is


def full_form(accept: str, query: str, agent: str = "", offer: Offer = OBJECT) -> Form:
    """Accept, and what query and agent say of it. Raises NotAcceptable, BadRequest."""
    form = form_of(accept, offer)
    pretty = form.pretty or is_pretty(query, agent)
    include = first_value(query, "includeObject") if form.shape == "Table" else ""
    if include not in _INCLUDED:
        allowed = "must be 'Metadata', 'Object', 'None', or empty"
        why = invalid_value("includeObject", include, allowed)
        raise BadRequest(f"Unable to convert to Table as requested: {why}")
    if pretty == form.pretty and not include:
        return form
    return replace(form, include=include, pretty=pretty)


def form_of(accept: str, offer: Offer = OBJECT) -> Form:
    """The form that is wanted most of those that we can give. Raises NotAcceptable."""
    negotiate = _form_of if len(accept) <= MOST_REMEMBERED else _form_of.__wrapped__
    return negotiate(accept, offer)


@lru_cache(maxsize=256)
def _form_of(accept: str, offer: Offer) -> Form:
    if not accept:
        return PLAIN
    in_protobuf: Form | None = None
    for clause in parse_accept(accept):
        for media, subtype in _MEDIA:
            form = (
                _offered(media, clause, offer) if clause.matches("application", subtype) else None
            )
            if form is None:
                continue
            if media != PROTOBUF:
                return form
            in_protobuf = in_protobuf or form
    if in_protobuf is not None:
        return in_protobuf  # last: JSON is there already, this has to be made
    raise NotAcceptable(f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}")


def _offered(media: str, clause: Clause, offer: Offer) -> Form | None:
    given = clause.parameters
    if not _is_known(media, given, offer):
        return None
    pretty, shape, version = given.get("pretty") == "1", given.get("as", ""), given.get("v", "")
    if not shape and "g" not in given and "v" not in given:
        is_had = media != PROTOBUF or offer.has_protobuf
        return Form(media, pretty=pretty) if is_had else None
    if (given.get("g"), version) not in _SHAPED or shape not in offer.shapes:
        return None
    if shape == "Table" and media == PROTOBUF:
        return None  # tables have no form in protobuf
    return Form(media, shape, version, pretty=pretty)


def _is_known(media: str, given: Mapping[str, str], offer: Offer) -> bool:
    """Whether it is a way to stream, and a version of the server, that there is."""
    stream, version = given.get("stream", ""), given.get("sv", "")
    if stream and (stream != "watch" or media == YAML):
        return False
    return not version or (version == "v1" and bool(offer.shapes))


def check_represented(accept: str, available: tuple[str, ...]) -> None:
    """As upstream's router, which looks at media types by name, before anybody negotiates. Raises
    NotAcceptable."""
    if accept and available and not _is_represented(accept[:MOST_REMEMBERED], available):
        raise NotAcceptable(
            f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}", details={}
        )


@lru_cache(maxsize=256)
def _is_represented(accept: str, available: tuple[str, ...]) -> bool:
    named = {clause.partition(";")[0].strip(" ") for clause in accept.split(",")}
    return "*/*" in named or not named.isdisjoint(available)


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or JSON


def patch_type(content_type: str, is_custom: bool) -> str:
    """Raises UnsupportedMediaType, in the words of those who serve the kind upstream."""
    found = PATCH_TYPES.get(content_type.partition(";")[0])
    if found is None and not is_custom:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    if found is None or (is_custom and found == "strategic"):
        listed = ", ".join(media for media, kind in PATCH_TYPES.items() if kind != "strategic")
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{listed}"
        )
    return found


def body_media(content_type: str) -> str:
    """JSON, YAML or PROTOBUF. Raises UnsupportedMediaType."""
    media = media_type(content_type)
    if media in (JSON, PROTOBUF):
        return media
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return YAML
    raise UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: "
        f"{JSON}, {YAML}, {PROTOBUF}"
    )


def encoded(obj: Obj, form: Form) -> bytes:
    return written(obj, form.media, pretty=form.pretty)


def list_head(
    kind: str, api_version: str, revision: int, continue_token: str, remaining: int | None
) -> Obj:
    metadata: Obj = {"resourceVersion": str(revision)} if revision else {}
    if continue_token:
        metadata["continue"] = continue_token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata}


class ListPieces:
    """The list's JSON, joined from what the cache has, a step at a time: it may be megabytes, which
    exist nowhere else where the cache keeps no bytes."""

    def __init__(self, head: Obj, items: Sequence[Item], type_of_items: bytes = b"{") -> None:
        """`type_of_items`: how their bytes begin, where the list says of what type they are."""
        self._start = orjson.dumps(head)[:-1] + b',"items":['
        self._items, self._type = items, type_of_items
        self.about_bytes = len(self._start) + sum(item.size for item in items)

    def __iter__(self) -> Iterator[bytes]:
        items, cut = self._items, len(self._type)
        at_once = max(1, len(items) * STEP_BYTES // self.about_bytes)
        start = self._start + b"{"
        for at in range(0, len(items), at_once):
            yield start + b",{".join([item.data[cut:] for item in items[at : at + at_once]])
            start = b",{"
        yield b"]}\n" if items else self._start + b"]}\n"


def type_bytes(api_version: str, kind: str) -> bytes:
    """How the bytes of every object of this type begin (storage/stored_form.py)."""
    return b'{"apiVersion":"%b","kind":"%b",' % (api_version.encode(), kind.encode())


def untyped(obj: Obj) -> Obj:
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def partial(obj: Obj, version: str) -> Obj:
    """PartialObjectMetadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata_alone(obj),
    }


def gzip_wanted(accept_encoding: str, size: int) -> bool:
    return size >= GZIP_FROM_BYTES and "gzip" in accept_encoding


def gzip_bytes(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with gzip's header and checksum
    return packer.compress(body) + packer.flush()
