"""Decoding of a request body into an object of the expected kind.

Job: kind and version must fit; unknown and duplicate fields by fieldValidation. Pure.
Invariant: what comes out shares nothing with what came in.
"""

import orjson

from sampan.api.calls import Call
from sampan.api.custom.custom_version import CustomVersion, custom_of
from sampan.api.errors import BadRequest, invalid, invalid_value
from sampan.api.go_text import internal_type
from sampan.api.objects import Obj, copy_of, name_of
from sampan.api.resources import Resource
from sampan.api.schema.published import Checked, Schema, strict_error

_ACCEPTED = {"Eviction": ("policy/v1beta1",)}  # old drains write it so
_YAML_ERRORS = "yaml: unmarshal errors:"


def expected_kind(resource: Resource, subresource: str) -> tuple[str, str]:
    """(apiVersion, kind) of the body of a call."""
    row = resource.subresource(subresource) if subresource else None
    if row is None or not row.kind:
        return resource.api_version, resource.kind
    return (f"{row.group}/{row.version}" if row.group else row.version), row.kind


def decode_body(schema: Schema, call: Call, warnings: list[str]) -> Obj:
    """Raises BadRequest."""
    api_version, kind = expected_kind(call.resource, call.subresource)
    if call.options.patch_type == "apply":
        return copy_of(call.body)  # type: ignore[no-any-return]  # an object, as apply has made it
    return check_body(schema, call, api_version, kind, call.body, warnings)


def decode_with_spec(schema: Schema, call: Call, spec: bytes, warnings: list[str]) -> Obj:
    """The same where the spec is decoded already. Raises BadRequest."""
    api_version, kind = expected_kind(call.resource, call.subresource)
    body = {**call.body, "spec": {}}
    obj = check_body(schema, call, api_version, kind, body, warnings)
    obj["spec"] = orjson.loads(spec)
    return obj


def check_body(
    schema: Schema, call: Call, api_version: str, kind: str, body: object, warnings: list[str]
) -> Obj:
    if not isinstance(body, dict):
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get "
            "version/kind; json parse error"
        )
    custom = custom_of(call.resource)
    if custom is not None and kind == custom.kind:
        return _custom(call, custom, body, warnings)
    given_kind = body.get("kind") or kind
    given_version = body.get("apiVersion") or api_version
    if given_kind != kind:
        raise _other_kind(schema, str(given_version), str(given_kind), api_version, kind)
    if given_version != api_version and given_version not in _ACCEPTED.get(kind, ()):
        raise BadRequest(
            f"the API version in the data ({given_version}) does not match the expected API "
            f"version ({api_version})"
        )
    if schema.name_of(api_version, kind) is None:
        return {**copy_of(body), "apiVersion": api_version, "kind": kind}
    found = schema.check(api_version, kind, body)
    obj = typed_object(found, api_version, kind, body)
    judge(call, api_version, kind, [*found.unknown, *call.problems], warnings)
    return obj


def _other_kind(
    schema: Schema, given_version: str, given_kind: str, api_version: str, kind: str
) -> BadRequest:
    """In the words of upstream's scheme, which has types for all that it knows."""
    version = given_version.rpartition("/")[2]
    head = f'{given_kind} in version "{version}" cannot be handled as a {kind}: '
    if schema.name_of(given_version, given_kind) is None:
        return BadRequest(
            f'{head}no kind "{given_kind}" is registered for version "{given_version}"'
        )
    wanted = internal_type(api_version.rpartition("/")[0], kind)
    return BadRequest(
        f"{head}converting ({version}.{given_kind}) to ({wanted}): unknown conversion"
    )


def typed_object(found: Checked, api_version: str, kind: str, given: Obj) -> Obj:
    """What was read, as an object of its kind. Who sends no entry of managedFields at all, in a
    list, wants to have none: the one empty list of metadata that says something."""
    obj = found.obj
    obj["apiVersion"], obj["kind"] = api_version, kind
    if (given.get("metadata") or {}).get("managedFields") == []:
        obj["metadata"]["managedFields"] = []
    return obj


def judge(
    call: Call, api_version: str, kind: str, problems: list[str], warnings: list[str]
) -> None:
    """Unknown and duplicate fields, as the caller wants them treated. Raises BadRequest."""
    if problems and call.options.field_validation == "Strict":
        raise strict_error(api_version, kind, problems)
    if problems and call.options.field_validation == "Warn":
        warnings.extend(line for problem in problems for line in warning_lines(problem))


def warning_lines(problem: str) -> list[str]:
    """YAML's sentence is one warning per line, without its head."""
    if not problem.startswith(_YAML_ERRORS):
        return [problem]
    return [line.strip() for line in problem[len(_YAML_ERRORS) :].splitlines() if line.strip()]


def _custom(call: Call, custom: CustomVersion, body: Obj, warnings: list[str]) -> Obj:
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if version != custom.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({custom.api_version})"
        )
    if kind != custom.kind:
        why = invalid_value("kind", kind, f"must be {custom.kind}")
        raise invalid(kind, custom.group, name_of(body), [why])
    return decode_custom(call, custom, body, warnings)


def decode_custom(call: Call, custom: CustomVersion, body: Obj, warnings: list[str]) -> Obj:
    """Of what says that it is of the kind. Raises BadRequest."""
    # What came over the wire was read for this call alone, and a create reads it once. Who is in
    # this process sends no agent, and keeps what it gave.
    found = custom.decoded(body, is_ours=call.verb == "create" and bool(call.agent))
    unknown = [f'unknown field "{item}"' for item in found.unknown]
    judge(call, custom.api_version, custom.kind, [*call.problems, *unknown], warnings)
    return found.obj
