"""A pod's status in the form in which it is told: in order, and within bounds. Pure.

Job: as upstream's normalizeStatus: containers by name, init containers as the spec has them, and of
    what containers said at their end no more than the pod's share.
"""

from sampan.api.objects import Obj, spec_of

# Of all containers of one pod together.
MESSAGE_BYTES = 12 * 1024


def normalized(pod: Obj, status: Obj) -> Obj:
    for kind in ("containerStatuses", "ephemeralContainerStatuses"):
        if len(status.get(kind) or ()) > 1:
            status[kind] = sorted(status[kind], key=lambda item: str(item["name"]))
    spec = spec_of(pod)
    count = sum(
        len(spec.get(kind) or ())
        for kind in ("containers", "initContainers", "ephemeralContainers")
    )
    share = MESSAGE_BYTES // max(count, 1)
    for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        if status.get(kind):
            status[kind] = [_shortened(item, share) for item in status[kind]]
    return status


def _shortened(container: Obj, most_bytes: int) -> Obj:
    for key in ("state", "lastState"):
        end = (container.get(key) or {}).get("terminated") or {}
        said = end.get("message") or ""
        # No text has fewer bytes than letters.
        if len(said) > most_bytes // 4 and len(said.encode()) > most_bytes:
            short = said.encode()[:most_bytes].decode(errors="replace")
            container = {**container, key: {"terminated": {**end, "message": short}}}
    return container
