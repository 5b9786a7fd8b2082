"""What an admission webhook has answered, read as upstream's API server reads it. Pure.

Job: an AdmissionReview → its response, or why it is none; a patch → the changed object.
Invariant: an answer to another question, in another version, or with what its kind of webhook may
    not say, is refused in upstream's words; v1beta1 is trusted in all of this, as ever.
"""

from base64 import b64decode

from sampan.api.decode import Decoder
from sampan.api.decode_scalars import Malformed, Mismatch
from sampan.api.errors import ApiError, Denied, internal_error
from sampan.api.objects import Obj
from sampan.api.patch.json_patch import json_patch
from sampan.api.patch.operations import Operations, read_operations
from sampan.api.schema.field_kinds import STRING, Type
from sampan.api.schema.published import Schema
from sampan.apiserver.outside.webhook_client import CallFailed, NotCallable
from sampan.core.fast_dataclass import dataclass

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")
_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
_KIND = "AdmissionReview"


class BadAnswer(CallFailed):
    """The webhook has answered, and it cannot be used; the text says why."""


class BadPatch(CallFailed):
    """The webhook's patch is none; the text says why."""


class UnsupportedPatch(CallFailed):
    """A patch of another type."""


@dataclass(frozen=True, slots=True)
class HookResponse:
    allowed: bool
    status: Obj | None = None
    operations: Operations | None = None  # None: nothing is to be changed
    warnings: tuple[str, ...] = ()
    audit: tuple[tuple[str, str], ...] = ()


class HookAnswers:
    """Reads answers; the types of a review are compiled once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._decoder = Decoder(self._fields_of)

    def _fields_of(self, name: str) -> dict[str, Type]:
        holder, _, short = name.rpartition(".")
        if short == _KIND:
            response = Type("object", name=f"{holder}.AdmissionResponse")
            return {
                "kind": STRING,
                "apiVersion": STRING,
                "request": Type("any"),
                "response": response,
            }
        if short == "AdmissionResponse":
            return {
                "uid": STRING,
                "allowed": Type("boolean"),
                "status": Type("object", name=_STATUS),
                "patch": Type("string", format="byte"),
                "patchType": STRING,
                "auditAnnotations": Type("map", element=STRING),
                "warnings": Type("list", element=STRING),
            }
        return self._schema.fields_of(name)

    def response_of(self, answer: Obj, version: str, uid: str, is_mutating: bool) -> HookResponse:
        """Raises CallFailed: what it says is of another type; BadAnswer, BadPatch."""
        _check_version(answer, version)
        response = self._decoded(answer, version).get("response")
        if response is None:
            raise BadAnswer("webhook response was absent")
        patch, patch_type = response.get("patch") or "", response.get("patchType")
        if version == "v1":
            _check_addressed(answer, response, uid)
            _check_patch(bool(patch), patch_type, is_mutating)
        else:
            patch, patch_type = patch if is_mutating else "", "JSONPatch"
        return HookResponse(
            bool(response.get("allowed")),
            response.get("status"),
            _operations(patch, patch_type) if response.get("allowed") else None,
            tuple(response.get("warnings") or ()),
            tuple((response.get("auditAnnotations") or {}).items()),
        )

    def _decoded(self, answer: Obj, version: str) -> Obj:
        root = f"io.k8s.api.admission.{version}.{_KIND}"
        try:
            found: Obj = self._decoder.struct(root)(answer, (), [])
        except Mismatch as problem:
            raise CallFailed(self._decoder.error_text(root, answer)) from problem
        except (Malformed, RecursionError) as problem:
            raise CallFailed(str(problem)) from problem
        return found


def _check_version(answer: Obj, version: str) -> None:
    """That it can be read as what was asked for. Raises CallFailed."""
    for key in ("apiVersion", "kind"):
        value = answer.get(key)
        if value is not None and not isinstance(value, str):
            raise CallFailed(
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into "
                f"Go struct field .{key} of type string"
            )
    given, kind = answer.get("apiVersion") or "", answer.get("kind") or _KIND
    if not given or (given, kind) == (f"{GROUP}/{version}", _KIND):
        return
    group, _, other = given.partition("/")
    is_review = kind == _KIND and group == GROUP and other in VERSIONS
    if is_review or (kind == "Status" and given in ("v1", f"{GROUP}/v1")):
        given_type = f"{other or given}.{kind}"
        raise CallFailed(f"converting ({given_type}) to ({version}.{_KIND}): unknown conversion")
    raise CallFailed(f'no kind "{kind}" is registered for version "{given}"')


def _check_addressed(answer: Obj, response: Obj, uid: str) -> None:
    given = response.get("uid") or ""
    if given != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{given}"')
    wanted = f"{GROUP}/v1, Kind={_KIND}"
    group, _, version = (answer.get("apiVersion") or "").rpartition("/")
    got = f"{group}/{version}, Kind={answer.get('kind') or ''}"
    if got != wanted:
        raise BadAnswer(f"expected webhook response of {wanted}, got {got}")


def _check_patch(has_patch: bool, patch_type: str | None, is_mutating: bool) -> None:
    if not is_mutating:
        if has_patch:
            raise BadAnswer("validating webhook may not return response.patch")
        if patch_type is not None:
            raise BadAnswer("validating webhook may not return response.patchType")
    elif has_patch and patch_type is None:
        raise BadAnswer("webhook returned response.patch but not response.patchType")
    elif not has_patch and patch_type is not None:
        raise BadAnswer("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise BadAnswer('webhook returned invalid response.patchType of ""')


def _operations(patch: str, patch_type: str | None) -> Operations | None:
    if not patch:
        return None
    try:
        found = read_operations(b64decode(patch))
    except ValueError as error:
        raise BadPatch(str(error)) from error
    if found and patch_type != "JSONPatch":
        raise UnsupportedPatch(f'unsupported patch type "{patch_type}"')
    return found or None


def patched(obj: Obj, response: HookResponse) -> object:
    """What the patch makes of an object. Raises InternalError."""
    try:
        return json_patch(obj, response.operations)
    except ApiError as error:
        raise internal_error(str(error.__cause__ or error)) from error


def denial(name: str, status: Obj | None) -> ApiError:
    """As upstream's ToStatusErr."""
    given = status or {}
    start = f'admission webhook "{name}" denied the request'
    said = given.get("message") or given.get("reason")
    code = given.get("code") or 0
    return Denied(
        f"{start}: {said}" if said else f"{start} without explanation",
        code if 400 <= code < 1000 else 400,
        given.get("reason") or "",
        given.get("details"),
    )


def failure_text(name: str, error: CallFailed) -> str:
    """How a caller is told of a webhook that could not be asked, or gave no answer."""
    if isinstance(error, UnsupportedPatch):
        return f'failed calling webhook "{name}": {error}'
    if isinstance(error, NotCallable):
        head = "could not get REST client"
    elif isinstance(error, BadPatch):
        head = "received undecodable patch in webhook response"
    elif isinstance(error, BadAnswer):
        head = "received invalid webhook response"
    else:
        head = "failed to call webhook"
    return f'failed calling webhook "{name}": {head}: {error}'
