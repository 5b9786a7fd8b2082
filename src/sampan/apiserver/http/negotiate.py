"""Content negotiation: Accept and Content-Type.

Job: Accept → Form, Content-Type and bytes → JSON data, objects and lists → bytes.
Invariant: what a client does not accept is 406, what we cannot read is 415; nothing is guessed.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from urllib.parse import parse_qsl

import orjson

from sampan.api.calls import Item
from sampan.api.errors import NotAcceptable, UnsupportedMediaType
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import STEP_BYTES

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MOST_REMEMBERED = 1024  # characters of an Accept header; kubectl sends 300
GZIP_FROM_BYTES = 128 * 1024
PATCH_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_SHAPES = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is to look. `shape` is empty for the object itself."""

    media: str = JSON
    shape: str = ""
    version: str = ""  # of meta.k8s.io, for shapes
    include: str = ""  # of a table: which part of each object goes along
    pretty: bool = False


PLAIN = Form()


def full_form(accept: str, query: str, has_table: bool = True) -> Form:
    """Accept and the query's say in it. Raises NotAcceptable."""
    form = form_of(accept, has_table)
    if "pretty=" not in query and "includeObject=" not in query:
        return form
    given = dict(parse_qsl(query, keep_blank_values=True))
    pretty = given.get("pretty", "false").lower() not in ("false", "0")
    return replace(form, include=given.get("includeObject", ""), pretty=pretty)


def form_of(accept: str, has_table: bool = True) -> Form:
    """The first form of the Accept header that we can give. Raises NotAcceptable."""
    negotiate = _form_of if len(accept) <= MOST_REMEMBERED else _form_of.__wrapped__
    return negotiate(accept, has_table)


@lru_cache(maxsize=256)
def _form_of(accept: str, has_table: bool) -> Form:
    if not accept:
        return PLAIN
    in_protobuf: Form | None = None
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        found = _media(media.lower())
        shape = given.get("as", "")
        if found is None or (shape and not _is_offered(shape, given)):
            continue
        if shape == "Table" and (not has_table or found == PROTOBUF):
            continue  # tables have no form in protobuf
        form = Form(found, shape, given.get("v", "") if shape else "")
        if found != PROTOBUF:
            return form
        in_protobuf = in_protobuf or form
    if in_protobuf is not None:
        return in_protobuf  # last: JSON is there already, this has to be made
    raise NotAcceptable(f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}")


def _media(media: str) -> str | None:
    if media in (JSON, "*/*", "application/*"):
        return JSON
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return YAML
    return PROTOBUF if media == PROTOBUF else None


def _is_offered(shape: str, given: dict[str, str]) -> bool:
    return (
        shape in _SHAPES and given.get("g") == "meta.k8s.io" and given.get("v") in ("v1", "v1beta1")
    )


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


def yaml_bytes(obj: Obj) -> bytes:
    import yaml  # most clients never ask for it

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: bytes = yaml.dump(
        obj, Dumper=dumper, default_flow_style=False, allow_unicode=True, encoding="utf-8"
    )
    return text


def list_head(
    kind: str, api_version: str, revision: int, continue_token: str, remaining: int | None
) -> Obj:
    metadata: Obj = {"resourceVersion": str(revision)}
    if continue_token:
        metadata["continue"] = continue_token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata}


class ListPieces:
    """The list's JSON, joined from what the cache has, a step at a time: it may be megabytes, which
    exist nowhere else where the cache keeps no bytes."""

    def __init__(self, head: Obj, items: Sequence[Item]) -> None:
        self._start = orjson.dumps(head)[:-1] + b',"items":['
        self._items = items
        self.about_bytes = len(self._start) + sum(item.size for item in items)

    def __iter__(self) -> Iterator[bytes]:
        items = self._items
        at_once = max(1, len(items) * STEP_BYTES // self.about_bytes)
        start = self._start
        for at in range(0, len(items), at_once):
            yield start + b",".join([item.data for item in items[at : at + at_once]])
            start = b","
        yield b"]}" if items else start + b"]}"


def partial(obj: Obj, version: str) -> Obj:
    """PartialObjectMetadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj.get("metadata") or {},
    }


def gzip_wanted(accept_encoding: str, size: int) -> bool:
    return size >= GZIP_FROM_BYTES and "gzip" in accept_encoding


def gzip_bytes(body: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with gzip's header and checksum
    return packer.compress(body) + packer.flush()
