"""OpenAPI: /openapi/v2 and /openapi/v3.

Job: make the documents when they are first asked for, keep them compressed, say which is which.
Invariant: a hash names one content: it is taken from everything that a document is made of.
Owner: the API server, which makes a new one when the list of resources changes. Making the document
    of version 2 takes a tenth of a second: call `v2` off the event loop.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlencode

import orjson

from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import NotAcceptable
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.schema.published import Schema
from sampan.apiserver.aggregation.foreign_documents import ForeignOpenApi
from sampan.apiserver.openapi.custom_kinds import ExtendedSchema, with_custom_v2, with_custom_v3
from sampan.apiserver.openapi.discovery_paths import root_operations
from sampan.apiserver.openapi.documents import document_v2, document_v3, root_document_v3
from sampan.apiserver.openapi.merging import with_foreign_v2
from sampan.apiserver.openapi.paths import Operation
from sampan.apiserver.openapi.protobuf import encode
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.accept import parse_accept

JSON = "application/json"
# What clients ask for; the @ is not allowed in a media type, so the answer says it with a dot.
_ASKED_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
NOTHING_FOREIGN: Mapping[str, ForeignOpenApi] = {}
_FORM = "3"  # to be raised when the code here makes another document from the same input


@dataclass(frozen=True, slots=True)
class Packed:
    """A document as it is kept. Most clients take gzip; for the others it is unpacked."""

    gzip: bytes
    etag: str  # with its quotes
    content_type: str = JSON

    def body(self) -> bytes:
        return zlib.decompress(self.gzip, 31)


class OpenApi:
    def __init__(
        self,
        schema: Schema,
        resources: Iterable[Resource],
        before: "OpenApi | None" = None,
        foreign: Mapping[str, ForeignOpenApi] = NOTHING_FOREIGN,
    ) -> None:
        """`before`: of other resources; what is the same is not made again. `foreign`: what other
        servers say of their group versions."""
        self._schema, self._foreign = schema, foreign
        self._digest: str = schema.digest() if before is None else before._digest
        self._before: dict[str, Packed] = {} if before is None else before._made
        self._versions: dict[str, list[Resource]] = {}  # "api/v1", "apis/apps/v1"
        for row in resources:
            self._versions.setdefault(row.path.strip("/"), []).append(row)
        self._roots = root_operations(row for rows in self._versions.values() for row in rows)
        self._made: dict[str, Packed] = {}

    def index(self) -> Packed:
        """/openapi/v3: where the document of each group version is, and its hash."""
        return self._keep("index", self._index)

    def v3(self, name: str, accept: str = "") -> Packed | None:
        """/openapi/v3/`name`, as in `apis/apps/v1`; None where there is no such document. Raises
        NotAcceptable: there is only JSON."""
        _form_of(accept, (JSON,))
        name = name.strip("/")
        rows = self._versions.get(name)
        if rows is None:
            root = self._roots.get(name)
            return None if root is None else self._keep(name, lambda: self._root_document(root))
        return self._keep(name, lambda: self._document_v3(rows))

    def v2(self, accept: str = "") -> Packed:
        """/openapi/v2, in JSON, or in protobuf for those that want it more. Raises
        NotAcceptable."""
        if _form_of(accept, (JSON, _ASKED_V2, PROTOBUF_V2)) == JSON:
            return self._keep("v2", self._document_v2)
        if "v2.proto" not in self._made:
            packed = _gzip(encode(self._document_v2()))
            self._made["v2.proto"] = Packed(packed, self._etag("v2.proto"), PROTOBUF_V2)
        return self._made["v2.proto"]

    def hash_of(self, name: str) -> str:
        """Of one group version; of everything, where the name is none."""
        if name in self._roots:
            made_of = f"{_FORM} {name} {self._digest}"
            return hashlib.sha512(made_of.encode()).hexdigest().upper()
        rows = self._versions.get(name, self._versions)
        listed = rows if isinstance(rows, list) else [row for item in rows.values() for row in item]
        custom = [custom.source for row in listed if (custom := custom_of(row)) is not None]
        foreign = "" if isinstance(rows, list) else self._foreign_digest()
        made_of = f"{_FORM} {name} {self._digest} {rows} {custom}{foreign}"
        return hashlib.sha512(made_of.encode()).hexdigest().upper()

    def _foreign_digest(self) -> str:
        return " ".join(f"{name} {self._foreign[name].digest}" for name in sorted(self._foreign))

    def _index(self) -> Obj:
        paths = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={self.hash_of(name)}"}
            for name in sorted((*self._versions, *self._roots))
        }
        for name, theirs in self._foreign.items():
            paths.pop(name, None)
            if theirs.v3_hash:
                url = f"/openapi/v3/{name}?{urlencode({'hash': theirs.v3_hash})}"
                paths[name] = {"serverRelativeURL": url}
        return {"paths": paths}

    def _document_v2(self) -> Obj:
        rows = [row for version in self._versions.values() for row in version]
        schema = ExtendedSchema(self._schema, rows)
        own = with_custom_v2(document_v2(schema, rows, schema.explanations()), schema)
        for name, theirs in self._foreign.items():
            own = with_foreign_v2(own, theirs.v2, f"/{name}")
        return own

    def _document_v3(self, rows: list[Resource]) -> Obj:
        schema = ExtendedSchema(self._schema, rows)
        return with_custom_v3(document_v3(schema, rows, schema.explanations()), schema)

    def _root_document(self, root: Operation) -> Obj:
        return root_document_v3(self._schema, root, self._schema.explanations())

    def _keep(self, name: str, make: Callable[[], Obj]) -> Packed:
        old = self._before.pop(name, None)
        if old is not None and old.etag == self._etag(name):
            self._made.setdefault(name, old)
        if name not in self._made:
            self._made[name] = Packed(_gzip(orjson.dumps(make())), self._etag(name))
        return self._made[name]

    def _etag(self, name: str) -> str:
        return f'"{self.hash_of(name)}"'


def _form_of(accept: str, offered: tuple[str, ...]) -> str:
    """What is wanted most of what there is. Raises NotAcceptable."""
    if not accept:
        return JSON
    for clause in parse_accept(accept):
        for media in offered:
            if clause.matches(*media.split("/", 1)):
                return media
    raise NotAcceptable("")


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()
