"""What paths of a kubelet's server are for.

Job: a path, however it is written → whether it runs something in a container or connects to one.
"""

from posixpath import normpath
from urllib.parse import unquote

_CONNECTING = frozenset({"exec", "attach", "run", "portforward", "cri"})
_DECODED = 3  # times: a proxy on the way may do so, too


def connects(path: str) -> bool:
    """Rather once too often: what it leads to is decided elsewhere, by whoever reads it last."""
    for _ in range(_DECODED):
        for read in (path, normpath(f"/{path}")):
            if read.lstrip("/\\").replace("\\", "/").partition("/")[0].lower() in _CONNECTING:
                return True
        path = unquote(path)
    return False
