"""How it is told that a patch cannot be read.

Job: words of a release. Pure.
"""

from sampan.api import features, json_reading
from sampan.api.errors import BadRequest


def not_decoded(*, strict: bool = False) -> str:
    """Of an applied configuration: how the sentence begins."""
    what = "patch" if features.changed("PatchIsJson") else "YAML"
    return f"error strict decoding {what}" if strict else f"error decoding {what}"


def not_read(body: bytes, why: str) -> BadRequest:
    """Of other patches; from some version on one that is no JSON is told in the same words always.
    `why`: in those of the version before."""
    is_short = features.changed("PatchIsJson") and bool(json_reading.complaint(body))
    return BadRequest("invalid JSON patch" if is_short else why)
