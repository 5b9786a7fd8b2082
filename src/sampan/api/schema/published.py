"""The types of the API, from the published definitions of one Kubernetes version.

Job: find a kind's type and its fields; check an object against it.
Invariant: a definition is parsed when it is first asked for, and once. Of versions that nobody
    asks for nothing is read.
"""

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from sampan.api import features
from sampan.api.decode import Decoder, GoForm
from sampan.api.decode_scalars import Malformed, Mismatch, path_text, unstructured_text
from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.api.schema.field_kinds import Type, fields_from
from sampan.api.schema.message_table import (
    Messages,
    always_written,
    emptiness_told,
    fields_always_written,
    load_messages,
)
from sampan.core.fast_dataclass import dataclass
from sampan.version import DEFAULT_MINOR

_FILE = Path(__file__).with_name("definitions.json.z")  # of the default version

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


@dataclass(frozen=True, slots=True)
class Checked:
    obj: Obj  # a fresh object: nothing of it is shared with what was checked
    unknown: list[str]  # 'unknown field "spec.foo"', for warnings and strict decoding


class Schema:
    """All definitions, most of them as unread text."""

    def __init__(
        self,
        version: str,
        index: dict[str, str],
        texts: dict[str, str],
        prose: Sequence[bytes] = (),
    ) -> None:
        self.version = version  # of Kubernetes, as v1.35.0
        self._index = index
        self._texts = texts
        self._prose = prose  # still compressed; a later part is laid over those before
        self._fields: dict[str, dict[str, Type]] = {}
        self._messages: Messages = {}
        self._zeros: dict[tuple[str, str], Obj] = {}
        self._decoder = Decoder(self.fields_of, self._go_form_of)
        self._converting_decoder = Decoder(self.fields_of, self._go_form_of, converts=True)

    @classmethod
    def load(cls, minor: str = "") -> "Schema":
        """Of a minor version, or of the one that this process is of: from the files inside the
        package, which the build has put there."""
        minor = minor or features.release().minor
        files = [_FILE]
        if minor != DEFAULT_MINOR:
            files.append(_FILE.with_name(f"definitions-{minor}.json.z"))
        index: dict[str, Any] = {}
        texts: dict[str, Any] = {}
        prose = []
        for file in files:
            if not file.exists():
                raise FileNotFoundError(
                    f"{file.name} is missing: run `python setup.py definitions`"
                )
            stream = zlib.decompressobj()
            structure = orjson.loads(stream.decompress(file.read_bytes()))
            index = _laid_over(index, structure["index"])
            texts = _laid_over(texts, structure["definitions"])
            prose.append(stream.unused_data)
        return cls(f"v{minor}.0", index, texts, prose)

    def digest(self) -> str:
        """Names the content: two schemas with one digest say the same."""
        told = hashlib.sha256(b"".join(self._prose))
        for name, text in self._texts.items():
            told.update(f"{name} {text}".encode())
        return told.hexdigest()

    def name_of(self, api_version: str, kind: str) -> str | None:
        """`io.k8s.api.core.v1.Pod`: under which name the definitions know a kind."""
        return self._index.get(f"{api_version} {kind}")

    def names(self) -> list[str]:
        return list(self._texts)

    def definition(self, name: str) -> Obj:
        """The definition as published, without prose; references are plain names. Parsed anew each
        time: what is needed often is kept as types."""
        found: Obj = orjson.loads(self._texts[name])
        return found

    def type_of(self, api_version: str, kind: str) -> Type | None:
        name = self.name_of(api_version, kind)
        return None if name is None else Type("object", name=name)

    def fields_of(self, name: str) -> dict[str, Type]:
        """The fields of a named object type."""
        fields = self._fields.get(name)
        if fields is None:
            fields = self._fields[name] = fields_from(self.definition(name))
        return fields

    def field(self, holder: Type, key: str) -> Type | None:
        """What `holder[key]` is; None where nothing is known of it."""
        if holder.shape == "object":
            return self.fields_of(holder.name).get(key)
        return holder.element if holder.shape == "map" else None

    def check(self, api_version: str, kind: str, obj: Any) -> Checked:
        """The object as the original would have decoded it, and would write it again: unknown
        fields, nulls and the zeros that Go leaves out are dropped, what it always writes is there,
        quantities and times are in their one spelling. BadRequest where a type does not fit."""
        return self._check(self._decoder, api_version, kind, obj)

    def check_unstructured(self, api_version: str, kind: str, obj: Any) -> Checked:
        """Like `check`, of an object that was put together of maps and not read from a text."""
        try:
            return self.check(api_version, kind, obj)
        except NotHandled:
            pass  # it is rare, and then other rules hold
        try:
            return self._check(self._converting_decoder, api_version, kind, obj)
        except NotHandled as error:
            if isinstance(error.__cause__, Mismatch):
                problem = error.__cause__
                named = self._decoder.named_type(self._index[f"{api_version} {kind}"], problem)
                why = unstructured_text(obj, problem, named)
                raise not_handled(api_version, kind, why) from error
            raise

    def zero(self, api_version: str, kind: str) -> Obj:
        """What Go writes of an object of which nothing is set. Read-only."""
        found = self._zeros.get((api_version, kind))
        if found is None:
            found = self._zeros[api_version, kind] = self.check(api_version, kind, {}).obj
        return found

    def _check(self, decoder: Decoder, api_version: str, kind: str, obj: Any) -> Checked:
        name = self._index[f"{api_version} {kind}"]
        found: list[Any] = []
        try:
            out = decoder.struct(name)(obj, (), found)
        except Mismatch as problem:
            why = decoder.error_text(name, obj)
            raise not_handled(api_version, kind, why) from problem
        except Malformed as problem:
            is_read = decoder is self._decoder  # else it was put together of maps
            why = (is_read and decoder.error_text(name, obj)) or str(problem)
            raise not_handled(api_version, kind, why) from problem
        except RecursionError as problem:
            # Hundreds of levels: nobody writes that, but somebody may send it.
            raise not_handled(api_version, kind, "exceeded max depth") from problem
        return Checked(out, [f'unknown field "{path_text(path)}"' for path in found])

    def _go_form_of(self, name: str) -> GoForm | None:
        self._messages = self._messages or load_messages()
        if name not in self._messages:
            return None
        messages = self._messages
        return GoForm(
            frozenset(always_written(messages, name)),
            fields_always_written(messages, name),
            frozenset(emptiness_told(messages, name)),
        )

    def check_metadata(self, meta: Any) -> tuple[Obj, list[str]]:
        """An ObjectMeta of a kind that the definitions do not know, and what it does not have.
        Raises ValueError, worded as Go's decoder does."""
        found: list[Any] = []
        try:
            out: Obj = self._decoder.struct(_OBJECT_META)(meta, (), found)
        except Mismatch as problem:
            raise ValueError(self._decoder.error_text(_OBJECT_META, meta)) from problem
        except (Malformed, RecursionError) as problem:
            raise ValueError(str(problem)) from problem
        return out, [path_text(path) for path in found]

    def explanations(self) -> dict[str, Any]:
        """Every definition's [text, {field: text}]. The caller keeps it as long as it needs it."""
        found: dict[str, Any] = {}
        for part in self._prose:
            found = _laid_over(found, orjson.loads(zlib.decompress(part)))
        return found


def _laid_over(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """In the order of their names; what is null there is gone."""
    if not base:
        return changes
    both = base | changes
    return {key: both[key] for key in sorted(both) if both[key] is not None}


class NotHandled(BadRequest):
    """400, as upstream's decoder words it."""

    def __init__(self, api_version: str, kind: str, why: str) -> None:
        self.why = why
        version = api_version.rpartition("/")[2]
        super().__init__(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def not_handled(api_version: str, kind: str, why: str) -> NotHandled:
    return NotHandled(api_version, kind, why)


def strict_error(api_version: str, kind: str, problems: list[str]) -> NotHandled:
    """fieldValidation=Strict: every unknown and duplicate field in one refusal."""
    return NotHandled(api_version, kind, f"strict decoding error: {', '.join(problems)}")
