"""PEM blocks, found in a text as Go's encoding/pem finds them. Pure.

Job: type, headers and bytes of each block; a block as text again.
Invariant: what stands between blocks, and blocks that are damaged, are passed over.
"""

import base64
import binascii
from collections.abc import Iterator

from sampan.core.fast_dataclass import dataclass

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"
_LINE = 64
CERTIFICATE = "CERTIFICATE"


@dataclass(frozen=True, slots=True)
class PemBlock:
    type: str
    headers: dict[str, str]
    data: bytes


def pem_blocks(text: bytes) -> Iterator[PemBlock]:
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        at += 1
        if not line.startswith(_BEGIN) or not line.endswith(_DASHES):
            continue
        kind = line[len(_BEGIN) : -len(_DASHES)]
        end = _END + kind + _DASHES
        last = next((n for n in range(at, len(lines)) if lines[n].strip() == end), None)
        if last is None:
            continue
        block = _block(kind, lines[at:last])
        if block is not None:
            at = last + 1
            yield block


def _block(kind: bytes, lines: list[bytes]) -> PemBlock | None:
    headers: dict[str, str] = {}
    while lines and b":" in lines[0]:
        key, _, value = lines[0].partition(b":")
        headers[key.strip().decode("latin-1")] = value.strip().decode("latin-1")
        lines = lines[1:]
    try:
        data = base64.b64decode(b"".join(b"".join(lines).split()), validate=True)
    except binascii.Error:
        return None
    return PemBlock(kind.decode("latin-1"), headers, data)


def pem_text(data: bytes, kind: str = CERTIFICATE) -> str:
    """A block without headers."""
    encoded = base64.b64encode(data).decode()
    lines = [encoded[start : start + _LINE] for start in range(0, len(encoded), _LINE)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
