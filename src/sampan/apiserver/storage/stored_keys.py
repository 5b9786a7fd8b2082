"""Stored keys: where which kind is.

Job: a key of the store to its kind's place and the key inside of it; what is stored there. Pure.
Invariant: every key below ROOT has both, whoever wrote it.
"""

import sys
from functools import cache

from sampan.api.resources import RESOURCES

ROOT = "/registry/"


def split_key(key: str) -> tuple[str, str]:
    """`/registry/pods/default/web` → (`/registry/pods/`, `default/web`); what is in no kind's place
    is in ROOT."""
    end = (key.find("/", len(ROOT)) + 1) or len(ROOT)
    return sys.intern(key[:end]), sys.intern(key[end:])  # once, whoever else names it so


def kind_at(prefix: str) -> str:
    """The built-in kind that is stored there; empty: no such."""
    return _built_in().get(prefix, "")


@cache
def _built_in() -> dict[str, str]:
    return {resource.storage_prefix: resource.kind for resource in RESOURCES}
