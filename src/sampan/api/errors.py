"""Errors that a caller of the API can cause, and their form on the wire: metav1.Status.

Job: one class per reason; to a Status and back. The HTTP edge is the only place that writes one.
Invariant: a Status that goes out and comes back gives an error of the same class and message.
"""

from collections.abc import Sequence
from typing import Any

from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass


class ApiError(Exception):
    """The caller asked wrongly, or for something that cannot be had now."""

    code, reason = 500, "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Obj | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: Obj = {} if details is None else details
        self.has_details = details is not None  # told, even where they say nothing
        self.retry_after_seconds = retry_after_seconds
        self.warnings: list[str] = []  # what was to be said of the request besides

    def status(self) -> Obj:
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = self.retry_after_seconds
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if details or self.has_details:
            status["details"] = details
        status["code"] = self.code
        return status


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


UNKNOWN_PATH = "the server could not find the requested resource"


class UnknownPath(ApiError):
    """Nothing is served there. It says nothing about any object, so it is no NotFound: who asked
    for one does not know it to be gone."""

    code, reason = 404, "NotFound"


class UnknownGroup(UnknownPath):
    """Nothing is served there, and nothing of its group: the one error that is told in plain text,
    as upstream does."""


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class Expired(ApiError):
    """410: the resourceVersion or continue token is older than what is kept."""

    code, reason = 410, "Expired"


class Gone(ApiError):
    code, reason = 410, "Gone"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


INTERNAL = "Internal error occurred: "


class InternalError(ApiError):
    """Told twice, as upstream's NewInternalError does: in the message and as a cause."""

    code, reason = 500, "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Obj | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        if details is None and message.startswith(INTERNAL):
            details = {"causes": [{"message": message.removeprefix(INTERNAL)}]}
        super().__init__(message, details=details, retry_after_seconds=retry_after_seconds)


def internal_error(why: str) -> InternalError:
    return InternalError(f"{INTERNAL}{why}")


class ObjectTooLarge(ApiError):
    """What the store does not take; upstream hands its words on as they are, without a reason."""

    code, reason = 500, ""


class Denied(ApiError):
    """Whoever was asked says with which code and reason, if any."""

    def __init__(self, message: str, code: int, reason: str, details: Obj | None) -> None:
        super().__init__(message, details=details)
        self.code, self.reason = code, reason


class Failure(ApiError):
    """500 without a reason: an error of the original that nobody gave one."""

    reason = ""


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Unserved(ServiceUnavailable):
    """A group of another server, which cannot be reached; told in plain text, as upstream does."""


class Timeout(ApiError):
    code, reason = 504, "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {
    kind.reason: kind
    for kind in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable,
        AlreadyExists, Conflict, Expired, Gone, RequestEntityTooLarge, UnsupportedMediaType,
        Invalid, TooManyRequests, InternalError, ServiceUnavailable, Timeout,
    )
}  # fmt: skip
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: MethodNotAllowed,
    406: NotAcceptable, 409: Conflict, 410: Expired, 413: RequestEntityTooLarge,
    415: UnsupportedMediaType, 422: Invalid, 429: TooManyRequests, 503: ServiceUnavailable,
    504: Timeout,
}  # fmt: skip


def from_status(status: Obj, code: int = 500) -> ApiError:
    """The error that a Status from a server stands for."""
    code = int(status.get("code") or code)
    kind = _BY_REASON.get(status.get("reason") or "") or _BY_CODE.get(code) or InternalError
    given = status.get("details")
    details = None if given is None else dict(given)
    if kind is NotFound and not details and status.get("message") == UNKNOWN_PATH:
        kind = UnknownPath
    retry = None if details is None else details.pop("retryAfterSeconds", None)
    message = status.get("message") or f"the server answered {code}"
    return kind(message, details=details, retry_after_seconds=retry)


def qualified_resource(plural: str, group: str) -> str:
    """`pods`, `deployments.apps`: how messages name a resource."""
    return f"{plural}.{group}" if group else plural


def _details_of(plural: str, group: str, name: str) -> Obj:
    details: Obj = {"name": name} if name else {}
    if group:
        details["group"] = group
    if plural:
        details["kind"] = plural
    return details


def not_found(plural: str, group: str, name: str) -> NotFound:
    return NotFound(
        f'{qualified_resource(plural, group)} "{name}" not found',
        details=_details_of(plural, group, name),
    )


def method_not_supported(plural: str, group: str, verb: str) -> MethodNotAllowed:
    return MethodNotAllowed(
        f'{verb} is not supported on resources of kind "{qualified_resource(plural, group)}"',
        details=_details_of(plural, group, ""),
    )


def already_exists(plural: str, group: str, name: str) -> AlreadyExists:
    return AlreadyExists(
        f'{qualified_resource(plural, group)} "{name}" already exists',
        details=_details_of(plural, group, name),
    )


def conflict(plural: str, group: str, name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {qualified_resource(plural, group)} "{name}": {why}',
        details=_details_of(plural, group, name),
    )


def forbidden(plural: str, group: str, name: str, why: str) -> Forbidden:
    """Refused by admission or by the object's own rules (authorization words its own)."""
    return Forbidden(
        f'{qualified_resource(plural, group)} "{name}" is forbidden: {why}',
        details=_details_of(plural, group, name),
    )


@dataclass(frozen=True, slots=True)
class FieldError:
    """One cause of an Invalid: what is wrong with which field. Built by the functions below."""

    reason: str  # FieldValueRequired, FieldValueInvalid …
    field: str  # spec.containers[0].image
    message: str  # Required value: …

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required_value(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, _with("Required value", detail))


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(
        "FieldValueInvalid", field, _with(f"Invalid value: {value_text(value)}", detail)
    )


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    listed = ", ".join(f'"{item}"' for item in supported)
    detail = f"supported values: {listed}" if supported else ""
    message = _with(f"Unsupported value: {value_text(value)}", detail)
    return FieldError("FieldValueNotSupported", field, message)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {value_text(value)}")


def field_forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, _with("Forbidden", detail))


def field_not_found(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", field, f"Not found: {value_text(value)}")


def too_long(field: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    # The value itself is left out, as upstream does since 1.30: it may be huge.
    message = f"Too long: may not be more than {limit} {unit}"
    return FieldError("FieldValueTooLong", field, message)


def too_many(field: str, count: int, limit: int) -> FieldError:
    message = f"Too many: {count}: must have at most {limit} items"
    return FieldError("FieldValueTooMany", field, message)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    message = _with(f"Invalid value: {value_text(value)}", detail)
    return FieldError("FieldValueTypeInvalid", field, message)


def invalid(kind: str, group: str, name: str, causes: Sequence[FieldError]) -> Invalid:
    """422 with every cause, worded as apimachinery words it."""
    listed = [str(cause) for cause in dict.fromkeys(causes)]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    named = f"{kind}.{group}" if group else kind
    details = _details_of(kind, group, name)
    details["causes"] = [
        {"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes
    ]
    return Invalid(f'{named} "{name}" is invalid: {text}', details=details)


def value_text(value: Any) -> str:
    """A bad value as field errors print it: strings quoted, numbers plain, the rest as JSON."""
    import orjson  # the client only reads errors, and starts without it

    from sampan.api.go_quoting import escape_html, quoted

    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return escape_html(orjson.dumps(value).decode())


def _with(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message
