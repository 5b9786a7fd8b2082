"""Bootstrap tokens: secrets of kube-system with which a new node makes itself known.

Job: what such a secret says, and until when. Pure.
"""

from base64 import b64decode
from binascii import Error as NotBase64

from sampan.api.objects import Obj, seconds_of

NAMESPACE = "kube-system"
PREFIX = "bootstrap-token-"
TYPE = "bootstrap.kubernetes.io/token"


def token_data(secret: Obj) -> dict[str, str]:
    """Its texts; what is none is left out."""
    plain = {}
    for key, value in (secret.get("data") or {}).items():
        try:
            plain[key] = b64decode(value).decode()
        except (NotBase64, UnicodeDecodeError):
            continue
    return plain


def seconds_left(data: dict[str, str], now: float) -> float | None:
    """None: for ever; 0: it has expired, or nobody can tell when it does."""
    expiration = data.get("expiration", "")
    if not expiration:
        return None
    try:
        return max(0.0, seconds_of(expiration) - now)
    except ValueError:
        return 0.0
