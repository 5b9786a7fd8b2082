"""Retries of a write that lost a compare-and-swap, and the Conflict in the end.

Job: the bound of attempts, and the Conflict after it.
"""

from sampan.api.calls import Call
from sampan.api.errors import ApiError, conflict

# How often a write that lost a race is tried again, where the caller set no condition. Each loss is
# somebody else's success, so the bound is there for bugs only.
ATTEMPTS = 100
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def lost_race(call: Call) -> ApiError:
    return conflict(call.resource.plural, call.resource.group, call.name, MODIFIED)
