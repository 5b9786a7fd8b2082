"""Connection errors in the words of Go's net package.

Job: a status and a body → what Kubernetes' clients make of them. Pure.
"""

_REFUSALS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    405: "the server does not allow this method on the requested resource",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
         "processing the request",
}  # fmt: skip


def refusal_words(code: int, body: str) -> str:
    """As apimachinery's NewGenericServerResponse."""
    if code in (403, 415):
        return body
    if code in _REFUSALS:
        return _REFUSALS[code]
    if code >= 500:
        quoted = body.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'an error on the server ("{quoted}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"
