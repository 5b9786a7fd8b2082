"""Failures of a server that gives no Status: what client-go makes of the code alone.

Job: code, request and text to the error that callers expect. Pure.
"""

from sampan.api.errors import ApiError, from_status
from sampan.api.objects import Obj
from sampan.core.patterns import lazy_pattern

_CODES = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: (
        "TooManyRequests",
        "the server has received too many requests and has asked us to try again later",
    ),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be "
        "processing the request",
    ),
}
_OWN_WORDS = {403: "Forbidden", 406: "NotAcceptable", 415: "UnsupportedMediaType"}
_PATH = lazy_pattern(
    r"/(?:api/[^/]+|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/[^/]+(?=/[^/]))?"
    r"/(?P<plural>[^/?]+)(?:/(?P<name>[^/?]+))?"
)


def error_of(code: int, text: str, method: str = "", target: str = "") -> ApiError:
    """`method` and `target` of a request for a resource; empty where it was for a path."""
    reason, message = _said(code, text, method)
    match = _PATH.match(target) if method else None
    details: Obj = {}
    if match is not None:
        group, plural, name = match["group"] or "", match["plural"], match["name"] or ""
        what = f"{plural}.{group}" if group else plural
        message += f" ({' '.join(filter(None, (method.lower(), what, name)))})"
        details = {"group": group, "kind": plural, "name": name}
    error = from_status({"message": message, "reason": reason, "details": details}, code)
    error.reason = reason
    return error


def _said(code: int, text: str, method: str) -> tuple[str, str]:
    if code == 409 and method == "POST":
        return "AlreadyExists", _CODES[409][1]
    if code in _OWN_WORDS:
        return _OWN_WORDS[code], text or "unknown"
    if code in _CODES:
        return _CODES[code]
    if code >= 500:
        shown = '"' + (text or "unknown").replace('"', '\\"') + '"'
        return (
            "InternalError",
            f"an error on the server ({shown}) has prevented the request from succeeding",
        )
    return (
        "",
        f"the server responded with the status code {code} but did not return more information",
    )
