"""One version of a custom kind: what its definition says, ready to be used.

Job: put the compilers of a schema together: decode, check, convert, show. Pure.
Invariant: a schema is compiled once, and only when the first object of the version comes.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import orjson

from sampan.api.custom import embedded, list_types, pruning, soundness, value_validation
from sampan.api.custom.structural import Structural, has_rules, structural_of
from sampan.api.decode_scalars import Path, path_text
from sampan.api.errors import BadRequest
from sampan.api.objects import Obj, copy_of, is_deleted
from sampan.api.resources import Resource
from sampan.api.schema.published import Schema, not_handled
from sampan.api.versions import version_rank
from sampan.core.bounded import Bounded
from sampan.core.fast_dataclass import dataclass

if TYPE_CHECKING:
    from sampan.api.custom.cel_rules import Rules

_COMPILED = (
    "schema_identity", "root", "_shape", "_soundness", "checks", "rules", "duplicates",
    "embedded_objects",
)  # fmt: skip
_FOR_WRITES = ("_shape", "checks", "rules")
_MOST_FORMS = 64
_REMEMBERED, _LARGEST_REMEMBERED = 4, 64 * 1024  # contents that were found sound, and their bytes


@dataclass(frozen=True, slots=True)
class ScalePaths:
    spec: tuple[str, ...]
    status: tuple[str, ...]
    selector: tuple[str, ...]  # empty: it has none


@dataclass(frozen=True, slots=True)
class Decoded:
    obj: Obj
    unknown: list[str]  # `spec.colour`


class FormWanted(Exception):
    """Only the webhook can tell how a version shows this; whoever can ask it does, and the step
    that needs it is done again."""

    def __init__(self, custom: "CustomVersion", obj: Obj) -> None:
        super().__init__(custom.api_version)
        self.custom, self.obj = custom, obj


class SchemaIdentity:
    """Which schema it is: who keeps what it made of a schema keeps it by this, weakly."""


class CustomKind:
    """All versions of a custom kind, and how to get from one to the other."""

    def __init__(self, definition: Obj, published: Schema) -> None:
        spec = definition["spec"]
        self.follow(definition)
        conversion = spec.get("conversion") or {}
        self.webhook: Obj | None = (
            conversion.get("webhook") if conversion.get("strategy") == "Webhook" else None
        )
        self.versions = {
            version["name"]: CustomVersion(self, spec, version, published)
            for version in spec["versions"]
        }
        self.storage = next(version for version in self.versions.values() if version.is_storage)
        # What the webhook said lately.
        self._forms: Bounded[tuple[str, bytes], Obj] = Bounded(_MOST_FORMS)

    def follow(self, definition: Obj) -> None:
        """The newest state of what it is made of; nothing that it is made of is another."""
        self.definition = definition
        self.is_terminating = is_deleted(definition)

    def shows_as(self, other: "CustomKind") -> bool:
        """Whether objects that are stored in any version are shown alike in both."""
        return (
            self.webhook == other.webhook
            and self.versions.keys() == other.versions.keys()
            and all(one.source == other.versions[key].source for key, one in self.versions.items())
        )

    def converted(self, obj: Obj, version: str) -> Obj:
        """Without managedFields, which are what is asked for. Raises FormWanted."""
        custom = self.versions[version]
        if self.webhook is None:
            return {**obj, "apiVersion": custom.api_version}
        bare = _without_managed_fields(obj)
        found = self._forms.get((version, orjson.dumps(bare)))
        if found is None:
            raise FormWanted(custom, bare)
        return found

    def learn(self, wanted: FormWanted, form: Obj) -> None:
        self._forms[wanted.custom.version, orjson.dumps(wanted.obj)] = form


class CustomVersion:
    def __init__(self, family: CustomKind, spec: Obj, version: Obj, published: Schema) -> None:
        self.family = family
        self.source = version  # what the definition says of it
        self.schema_token = object()  # whoever has the same one treats objects the same
        self.is_served = bool(version.get("served"))
        names = spec["names"]
        self.group: str = spec["group"]
        self.kind: str = names["kind"]
        self.plural: str = names["plural"]
        self.version: str = version["name"]
        self.singular: str = names.get("singular") or self.kind.lower()
        self.list_kind: str = names.get("listKind") or f"{self.kind}List"
        self.is_storage = bool(version.get("storage"))
        self.schema: Obj = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        subresources = version.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self.scale = scale_paths(subresources.get("scale"))
        self.columns: list[Obj] = version.get("additionalPrinterColumns") or []
        self.selectable = [
            field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()
        ]
        self.warning = _deprecation(spec, version)
        self._published = published
        self.schema_identity = SchemaIdentity()
        self._sound: tuple[bytes, ...] = ()  # contents that were sound a moment ago

    def same_as(self, other: "CustomVersion") -> bool:
        """Whether objects are treated the same in both."""
        return self.source == other.source and self.kind == other.kind

    def adopt(self, other: "CustomVersion", shown_alike: bool) -> None:
        """What was compiled of the same schema need not be compiled again. `shown_alike`: as the
        two kinds show what is stored in another version."""
        if shown_alike:
            self.schema_token = other.schema_token
        for key in _COMPILED:
            if key in other.__dict__:
                self.__dict__[key] = other.__dict__[key]

    def forget_compiled(self) -> None:
        """Nobody is served by it any more; who is still at it has it compiled again. Versions and
        their family have each other, and would keep it until the garbage collector finds them."""
        for key in (*_COMPILED, "status_checks"):
            if key != "schema_identity":
                self.__dict__.pop(key, None)

    @property
    def is_compiled(self) -> bool:
        """Whether an object can be checked without compiling anything before."""
        known = self.__dict__  # asked several times for each write
        return "_shape" in known and "checks" in known and "rules" in known

    def _compile(self) -> None:
        """With the first object, which may wait beside the loop; a sound one needs little of it,
        and the next one may not be sound."""
        for part in _FOR_WRITES:
            getattr(self, part)

    @cached_property
    def schema_bytes(self) -> int:
        return len(orjson.dumps(self.schema))

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @cached_property
    def root(self) -> Structural:
        return structural_of(self.schema)

    @cached_property
    def _shape(self) -> pruning.Shape:
        return pruning.compile_shape(self.root)

    @cached_property
    def _soundness(self) -> soundness.Test:
        return soundness.compile_soundness(self.root)

    @cached_property
    def checks(self) -> value_validation.Check:
        return value_validation.compile_checks(self.schema)

    @cached_property
    def status_checks(self) -> value_validation.Check | None:
        schema = (self.schema.get("properties") or {}).get("status")
        return None if schema is None else value_validation.compile_checks(schema)

    @cached_property
    def rules(self) -> "Rules | None":
        if not has_rules(self.root):
            return None
        # The language takes some milliseconds to load: only for who uses it.
        from sampan.api.custom.cel_rules import Rules

        return Rules(self.root)

    @cached_property
    def duplicates(self) -> list_types.Search | None:
        return list_types.compile_duplicates(self.root)

    @cached_property
    def embedded_objects(self) -> embedded.Walk | None:
        return embedded.compile_embedded(self.root)

    def is_sound(self, obj: Obj) -> bool:
        """Whether it is kept as it is, and no schema, list type or embedded object is broken.
        On its way in an object is asked about several times: who asks again is answered by what
        it says, not by what was found before somebody may have changed it."""
        return self._sound_content(obj) is not None

    def _sound_content(self, obj: Obj) -> bytes | None:
        """What a sound object says, without its metadata; None: it is not known to be sound."""
        if "metadata" in self.root.properties:
            return None
        try:
            content = orjson.dumps({key: obj[key] for key in obj if key != "metadata"})
        except (TypeError, ValueError):
            return None  # texts and numbers that only some writers can print
        if content in self._sound:
            return content
        if not self._soundness(obj):
            return None
        if len(content) <= _LARGEST_REMEMBERED:
            self._sound = (content, *self._sound[: _REMEMBERED - 1])
        return content

    def decoded(self, body: Obj, *, is_ours: bool = False) -> Decoded:
        """A body as it is kept. `is_ours`: nobody else has it, so that a good one needs no copy.
        Raises BadRequest."""
        unknown: list[str] = []
        obj = dict(body)
        if "metadata" in obj and obj["metadata"] is None:
            del obj["metadata"]
        if "metadata" in obj:
            try:
                obj["metadata"], more = self._published.check_metadata(obj["metadata"])
            except ValueError as error:
                raise not_handled(self.api_version, self.kind, str(error)) from error
            unknown.extend(f"metadata.{item}" for item in more)
        if "checks" not in self.__dict__:
            self._compile()
        content = self._sound_content(obj)
        if content is not None and is_ours:
            return Decoded(obj, unknown)
        if content is not None:
            fresh = orjson.loads(content)
            kept = {key: item if key == "metadata" else fresh[key] for key, item in obj.items()}
            return Decoded(kept, unknown)
        paths: list[Path] = []
        out: Obj = self._shape(obj, (), paths)
        unknown.extend(sorted(path_text(path) for path in paths))
        if self.embedded_objects is not None:
            try:
                embedded.coerce(self._published, self.embedded_objects, out, unknown)
            except BadRequest as error:
                raise not_handled(self.api_version, self.kind, error.message) from error
        return Decoded(out, unknown)

    def defaulted(self, obj: Obj) -> Obj:
        """After somebody else changed it: admission, a conversion."""
        found: Obj = self._shape(obj, (), [])
        return found

    def filled(self, obj: Obj) -> Obj:
        """A copy of what an apply has made, with its defaults and nothing left out."""
        found: Obj = copy_of(obj)
        pruning.fill(found, self.root)
        return found

    def shown(self, obj: Obj) -> Obj | None:
        """A stored object as this version shows it: what its schema does not know is left out,
        what it has defaults for is there. None where only a webhook can tell."""
        given = str(obj.get("apiVersion")).rpartition("/")[2]
        if given == self.version:
            return obj if self.is_sound(obj) else self.defaulted(obj)
        if self.family.webhook is not None:
            return None
        stored = self.family.versions.get(given)
        if stored is not None:
            obj = stored.defaulted(obj)
        return self.defaulted({**obj, "apiVersion": self.api_version})


def custom_of(resource: Resource) -> CustomVersion | None:
    """None for a built-in kind."""
    custom = resource.custom
    assert custom is None or isinstance(custom, CustomVersion), custom
    return custom


def _without_managed_fields(obj: Obj) -> Obj:
    meta = obj.get("metadata") or {}
    return {**obj, "metadata": {key: meta[key] for key in meta if key != "managedFields"}}


def scale_paths(scale: Obj | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        *(
            tuple(part for part in (scale.get(key) or "").split(".") if part)
            for key in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        )
    )


def _deprecation(spec: Obj, version: Obj) -> str:
    """What everybody who uses the version is warned with."""
    if not version.get("deprecated"):
        return ""
    own: str | None = version.get("deprecationWarning")
    if own is not None:
        return own
    group, kind = spec["group"], spec["names"]["kind"]
    text = f"{group}/{version['name']} {kind} is deprecated"
    newer = [
        item["name"]
        for item in spec["versions"]
        if item.get("served")
        and not item.get("deprecated")
        and version_rank(item["name"]) > version_rank(version["name"])
    ]
    if newer:
        text += f"; use {group}/{max(newer, key=version_rank)} {kind}"
    return text
