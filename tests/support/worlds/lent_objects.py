"""What the server lends to everybody, and nobody may change.

Job: find cached objects that are no longer what their bytes say.
"""

import orjson

from sampan.apiserver.server import ApiServer


def spoilt_objects(server: ApiServer) -> list[str]:
    """Their keys. Readers in the same process hold the cache's own objects, and pods of one
    template share parts: a change in place would be seen by all of them, and stored by none."""
    cache = server._cache  # the only place where both forms of an object are
    return [
        prefix + item.key
        for prefix in cache.sizes()
        for item in cache.kind(prefix).items.values()
        if orjson.loads(item.data) != item.obj
    ]
