"""Field manager: managedFields on the way of a write.

Job: know who writes through which door, and keep metadata.managedFields; server-side apply. Pure,
    given the time.
Invariant: managedFields is the server's: what a caller sends there is read by
    api/apply/managed_fields.py and never stored as it came.
"""

from collections.abc import Hashable
from dataclasses import replace

import orjson

from sampan.api.apply.field_schema import FieldSchema
from sampan.api.apply.field_sets import FieldSet, Patterns
from sampan.api.apply.field_types import Struct
from sampan.api.apply.managed_fields import (
    UNOWNED_METADATA,
    UPDATE,
    Writer,
    after_write,
    entries_of,
    identity,
    manager_from_user_agent,
    new_entry,
    patch_errors,
    same_but_times,
)
from sampan.api.apply.merge import apply, which
from sampan.api.apply.scale import (
    REPLICAS,
    SCALE_VERSION,
    custom_scale_of,
    object_entries,
    owned_at,
    scale_entries,
    scale_of,
    value_at,
)
from sampan.api.calls import Call
from sampan.api.custom.custom_version import CustomVersion, ScalePaths, custom_of
from sampan.api.decode_scalars import json_word
from sampan.api.errors import BadRequest, Failure, invalid
from sampan.api.kinds import Kinds
from sampan.api.objects import Obj, copy_of, time_text
from sampan.api.patch.refusals import not_decoded
from sampan.api.resources import Resource
from sampan.api.schema.published import NotHandled, Schema
from sampan.apiserver.authn.user import User
from sampan.apiserver.storage.sharing import Remembered, SharedValues
from sampan.apiserver.storage.stored_form import WITH_EQUAL_PARTS
from sampan.apiserver.write.decoding import expected_kind, typed_object, warning_lines
from sampan.apiserver.write.object_rules import NOT_BY_STATUS
from sampan.core.bounded import Bounded

# Written by the server on behalf of somebody: nobody comes to own these changes.
_UNOWNED = frozenset({"binding", "eviction"})
_STATUS_LIKE = frozenset({"approval", "status"})
# All that these change, whatever else is sent. As pod/strategy.go's reset fields.
_RESIZED = {"*": {"f:resources": None, "f:resizePolicy": None}}
_INCLUDED: dict[str, Patterns] = {
    "ephemeralcontainers": {"f:spec": {"f:ephemeralContainers": None}},
    "resize": {"f:spec": {"f:containers": _RESIZED, "f:initContainers": _RESIZED}},
}
_NUMBER = ("spec", "replicas")
_SCALE_FIELDS: Patterns = {"f:spec": {"f:replicas": None}}
_NODE = "system:node:"
_MOST_SKELETONS = 256
_MOST_FIELDS = 64  # of an object whose skeleton is looked at
_MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def _owners_of_number(call: Call, obj: Obj) -> tuple[list[Obj], FieldSet]:
    """Those who own the number of replicas, as entries of a Scale; and where it is."""
    paths = _scale_paths(call)
    replicas = REPLICAS if paths is None else owned_at(paths.spec)
    return scale_entries(_last_of_each(obj), replicas), replicas


def _scale_paths(call: Call) -> ScalePaths | None:
    """Of a custom kind, whose definition says where the numbers are."""
    custom = custom_of(call.resource)
    return None if custom is None else custom.scale


def _bare_scale(call: Call, obj: Obj, entries: list[Obj]) -> Obj:
    """As much of an object's Scale as somebody can own; of a custom kind it may lack the number."""
    paths = _scale_paths(call)
    number = value_at(obj, _NUMBER if paths is None else paths.spec)
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {"managedFields": entries},
        "spec": {"replicas": number} if number else {},
    }


def _last_of_each(obj: Obj) -> list[Obj]:
    """As upstream reads them: of two entries of one writer the later is the one that counts."""
    return [*{identity(entry): entry for entry in entries_of(obj)}.values()]


class Ownership:
    def __init__(self, schema: Schema, kinds: Kinds) -> None:
        self._schema = schema
        self._fields = FieldSchema(schema, kinds)
        self._ignored: dict[tuple[str, str, str], FieldSet] = {}
        self._sets = SharedValues()
        self._created = Remembered()
        self._by_skeleton: Bounded[Hashable, FieldSet] = Bounded(_MOST_SKELETONS)

    def created(
        self, user: User, call: Call, obj: Obj, now: float, of_spec: FieldSet | None = None
    ) -> None:
        """Of an object with its defaults, before admission has changed it (as upstream).
        `of_spec`: what is owned of its spec, where that is known."""
        if call.options.patch_type == "apply":
            return  # `applied` has done it
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        writer = self._writer(user, call, now)
        is_custom = call.resource.custom is not None  # a definition may change
        if of_spec is not None:
            rest = {key: value for key, value in obj.items() if key != "spec"}
            fields = {**self._created_fields(rest, writer), "f:spec": of_spec}
        else:
            fields = (self._fields_by_text if is_custom else self._created_fields)(obj, writer)
        if fields:
            meta["managedFields"] = [new_entry(writer, UPDATE, fields)]

    def posted(self, user: User, call: Call, obj: Obj, now: float) -> None:
        """Of what is answered and never stored, and need not be of the resource's own kind."""
        meta = obj["metadata"]
        meta.pop("managedFields", None)
        writer = replace(self._writer(user, call, now), api_version=obj["apiVersion"])
        asked = {key: value for key, value in obj.items() if key != "status"}
        fields = self._created_fields(asked, writer)
        if fields:
            meta["managedFields"] = [new_entry(writer, UPDATE, fields)]

    def fields_of_new(self, resource: Resource, obj: Obj) -> FieldSet:
        """All that whoever creates it owns."""
        call = Call("create", resource)
        writer = Writer("", resource.api_version, "", "", self._ignored_through(call))
        return self._first_fields(obj, writer)

    def _created_fields(self, obj: Obj, writer: Writer) -> FieldSet:
        """All that its maker owns. The same for all that are made from one template, but for what
        nobody owns; and for all that have the same fields, where none of these is a list (of whose
        items some may be owned apart), as an Event."""
        skeleton = _skeleton(obj)
        if skeleton is None:
            return self._fields_by_text(obj, writer)
        kind = (writer.api_version, obj["kind"], writer.subresource, skeleton)
        found = self._by_skeleton.get(kind)
        if found is None:
            found = self._first_fields(obj, writer)
            self._by_skeleton[kind] = found
        return found

    def _fields_by_text(self, obj: Obj, writer: Writer) -> FieldSet:
        meta = obj["metadata"]
        owned = {key: value for key, value in meta.items() if key not in UNOWNED_METADATA}
        text = orjson.dumps({**obj, "metadata": owned})
        found: FieldSet | None = self._created.get(text)
        if found is None:
            found = self._first_fields(obj, writer)
            self._created.keep(text, found)
        return found

    def _first_fields(self, obj: Obj, writer: Writer) -> FieldSet:
        made = self._after_write({}, obj, writer)
        fields: FieldSet = self._sets.shared(made[0]["fieldsV1"]) if made else {}
        return fields

    def updated(self, user: User, call: Call, new: Obj, old: Obj, now: float) -> None:
        if call.options.patch_type == "apply":
            return
        if call.subresource in _UNOWNED:
            self.own(new, [*entries_of(new)], old)  # nobody's; but a copy may share its sets
            return
        if call.subresource == "scale":
            self.own(new, self._scaled(user, call, new, old, now), old)
            return
        self.own(new, self._after_write(old, new, self._writer(user, call, now)), old)

    def _after_write(self, old: Obj, new: Obj, writer: Writer) -> list[Obj]:
        try:
            return after_write(self._fields, old, new, writer)
        except _MISSHAPEN:
            return entries_of(old)  # of a custom kind, and refused when it is validated

    def applied(self, user: User, call: Call, live: Obj, warnings: list[str], now: float) -> Obj:
        """A new object; `live` is {} where there is none. Raises BadRequest, Conflict, Failure."""
        config = self._configuration(call)
        writer = self._writer(user, call, now)
        result = apply(self._fields, live, config, writer, bool(call.options.force))
        try:
            new = self._as_object(call.resource, result.obj)
        except (NotHandled, ValueError) as error:
            raise _not_converted(config, error) from error
        _judge_repeated(call, warnings)
        self.own(new, result.entries, live)
        return new

    def _as_object(self, resource: Resource, merged: Obj) -> Obj:
        """What a configuration and an object have become together, as an object of its kind: it
        shares nothing with them."""
        custom = custom_of(resource)
        bare = {**merged, "metadata": {**(merged.get("metadata") or {}), "managedFields": None}}
        if custom is not None:
            new = custom.filled({key: item for key, item in bare.items() if key != "metadata"})
            new["metadata"] = self._schema.check_metadata(bare["metadata"])[0]
            return new
        if self._schema.name_of(resource.api_version, resource.kind) is None:
            return copy_of(bare)  # type: ignore[no-any-return]  # an object
        found = self._schema.check_unstructured(resource.api_version, resource.kind, bare)
        return typed_object(found, resource.api_version, resource.kind, {})

    def applied_scale(
        self, user: User, call: Call, live: Obj, warnings: list[str], now: float
    ) -> tuple[Obj, list[Obj]]:
        """The Scale that `live` shall have, and the entries of `live` then. A Scale is merged as
        one, among those who own the number. Raises BadRequest, Conflict."""
        config = self._configuration(call)
        _judge_repeated(call, warnings)
        paths = _scale_paths(call)
        scale = scale_of(live) if paths is None else custom_scale_of(live, paths)
        scale["metadata"]["managedFields"], replicas = _owners_of_number(call, live)
        writer = self._scale_writer(user, call, now)
        result = apply(self._fields, scale, config, writer, bool(call.options.force))
        version = call.resource.api_version
        return result.obj, object_entries(_last_of_each(live), result.entries, version, replicas)

    def _scaled(self, user: User, call: Call, new: Obj, old: Obj, now: float) -> list[Obj]:
        """The entries of an object whose Scale was written: as upstream, of the Scale, and from
        there back to the object."""
        entries, replicas = _owners_of_number(call, old)
        before, after = (_bare_scale(call, obj, entries) for obj in (old, new))
        found = after_write(self._fields, before, after, self._scale_writer(user, call, now))
        return object_entries(_last_of_each(old), found, call.resource.api_version, replicas)

    def _scale_writer(self, user: User, call: Call, now: float) -> Writer:
        writer = self._writer(user, call, now)
        return replace(writer, api_version=SCALE_VERSION, included=_SCALE_FIELDS)

    def own(self, obj: Obj, entries: list[Obj], live: Obj) -> None:
        """Make these the entries of `obj`, which `live` becomes."""
        meta = obj["metadata"]
        if not entries:
            meta.pop("managedFields", None)
            return
        if obj.get("kind") in WITH_EQUAL_PARTS:
            meta["managedFields"] = entries  # the cache shares them with those of others
            return
        known = entries_of(live)
        for entry in entries:
            for before in known:
                if entry is before:
                    break
            else:  # made for this write: still ours to change
                entry["fieldsV1"] = self._sets.shared(entry["fieldsV1"])
        meta["managedFields"] = entries

    def _configuration(self, call: Call) -> Obj:
        """What the caller applies, as it was sent. Raises BadRequest."""
        api_version, kind = expected_kind(call.resource, call.subresource)
        body = {} if call.body is None else call.body
        if not isinstance(body, dict):
            raise BadRequest(
                f"{not_decoded()}: error unmarshaling JSON: while decoding JSON: json: cannot "
                f"unmarshal {json_word(body)} into Go value of type map[string]interface {{}}"
            )
        given, given_kind = _text_of(body.get("apiVersion")), _text_of(body.get("kind"))
        if call.resource.custom is None or not given_kind:
            if (given, given_kind) != (api_version, kind):
                group, _, version = given.rpartition("/")
                raise BadRequest(f"invalid object type: {group}/{version}, Kind={given_kind}")
        elif given != api_version:
            raise BadRequest(
                "Incorrect version specified in apply patch. Specified patch version: "
                f"{given}, expected: {api_version}"
            )
        elif given_kind != kind:
            raise BadRequest(
                f"Incorrect kind specified in apply patch: {given_kind}, expected: {kind}"
            )
        return body

    def _writer(self, user: User, call: Call, now: float) -> Writer:
        options, resource = call.options, call.resource
        manager = options.field_manager or manager_from_user_agent(call.agent)
        return Writer(
            manager or _manager_of(user),
            resource.api_version,
            time_text(now),
            call.subresource,
            self._ignored_through(call),
            _INCLUDED.get(call.subresource),
        )

    def _ignored_through(self, call: Call) -> FieldSet:
        resource = call.resource
        if resource.custom is not None:
            return self._not_changed_by(call)  # a definition may change
        key = (resource.api_version, resource.plural, call.subresource)
        found = self._ignored.get(key)
        if found is None:
            found = self._ignored[key] = self._not_changed_by(call)
        return found

    def _not_changed_by(self, call: Call) -> FieldSet:
        resource = call.resource
        if call.subresource not in _STATUS_LIKE:
            return {"f:status": {}} if resource.subresource("status") is not None else {}
        custom = custom_of(resource)
        if custom is not None:
            return {"f:metadata": {}, **_all_but_status(custom)}
        root = self._fields.root(resource.api_version, resource.kind)
        assert isinstance(root, Struct), resource
        ignored: FieldSet = {
            f"f:{key}": {} for key in root.fields if key not in ("metadata", "status")
        }
        unchanged = NOT_BY_STATUS.get(resource.group_resource)
        if unchanged:
            ignored["f:metadata"] = {f"f:{key}": {} for key in unchanged}
        return ignored


def _all_but_status(custom: CustomVersion) -> FieldSet:
    return {f"f:{key}": {} for key in custom.root.properties if key != "status"}


def check_options(call: Call) -> None:
    """Of a patch. Raises Invalid."""
    options = call.options
    wrong = patch_errors(options.patch_type, options.force, options.field_manager)
    if wrong:
        raise invalid("PatchOptions", "meta.k8s.io", "", wrong)


def _skeleton(obj: Obj) -> Hashable | None:
    """Which fields there are, whatever they say but nothing; None where one of them is a list, or
    there are so many that hardly another object has the same."""
    found: list[Hashable] = []
    maps = [obj]
    for fields in maps:  # grows as it goes
        if len(found) + len(fields) > _MOST_FIELDS:
            return None
        found += fields
        for key, value in fields.items():
            if type(value) is dict:
                found.append(key)  # once more: this one has fields of its own
                maps.append(value)
            elif type(value) is list:
                return None
            elif not value:
                found.append((key, value))
        found.append(None)
    return tuple(found)


def settle(new: Obj, old: Obj) -> None:
    """A write that changes nothing but the time of an entry changes nothing at all."""
    entries, before = entries_of(new), entries_of(old)
    if not before or entries is before:
        return
    for key in (*new, *old):
        if key != "metadata":
            value, was = new.get(key), old.get(key)
            if value is not was and value != was:
                return
    if _rest_of_metadata(new) == _rest_of_metadata(old) and same_but_times(entries, before):
        new["metadata"]["managedFields"] = before


def _rest_of_metadata(obj: Obj) -> Obj:
    apart = ("managedFields", "resourceVersion")
    return {key: value for key, value in obj["metadata"].items() if key not in apart}


def _judge_repeated(call: Call, warnings: list[str]) -> None:
    """Fields that the configuration has twice. Raises BadRequest."""
    if call.problems and call.options.field_validation == "Strict":
        why = "; ".join(call.problems)
        raise BadRequest(f"{not_decoded(strict=True)}: error converting YAML to JSON: {why}")
    if call.options.field_validation == "Warn":
        warnings.extend(line for problem in call.problems for line in warning_lines(problem))


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def _manager_of(user: User) -> str:
    """Of a part that runs inside of this process and has no user agent."""
    if user.name.startswith(_NODE):
        return "kubelet"
    return user.name.rpartition(":")[2] or "unknown"


def _not_converted(config: Obj, error: NotHandled | ValueError) -> Failure:
    """The namespace is told where the configuration does."""
    named = which(config)
    why = error.why if isinstance(error, NotHandled) else str(error)
    return Failure(
        f"failed to convert new object ({named}) to proper version: unable to convert "
        f"unstructured object to {named.partition('; ')[2]}: {why}"
    )
