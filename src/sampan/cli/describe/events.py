"""Events about one object, as the last lines of its description.

Job: ask for them by the object's uid, sort, show how often and since when.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, seconds_of, uid_of
from sampan.api.rules.durations import human_duration
from sampan.cli.describe.writer import Writer
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session


def event_lines(session: Session, writer: Writer, info: Info, now: float) -> None:
    namespace = info.namespace or "default"
    fields = [f"involvedObject.name={info.name}", f"involvedObject.uid={uid_of(info.obj)}"]
    if info.namespace:
        fields.append(f"involvedObject.namespace={info.namespace}")
    if info.resource.kind == "Node":
        fields = [f"involvedObject.name={info.name}", "involvedObject.kind=Node"]
    try:
        path = f"/api/v1/namespaces/{namespace}/events"
        query = {"fieldSelector": ",".join(fields)}
        items = session.api.json("GET", path, query).get("items") or []
    except ApiError:
        items = []
    if not items:
        writer.line(0, "Events:", "<none>")
        return
    writer.flush()
    writer.line(0, "Events:\n  Type", "Reason", "Age", "From", "Message")
    writer.line(1, "----", "------", "----", "----", "-------")
    for event in sorted(items, key=last_seen):
        source = (
            (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
        )
        message = (event.get("message") or "").strip()
        field = (event.get("involvedObject") or {}).get("fieldPath")
        message = f"{field}: {message}" if field else message
        kind, reason = event.get("type") or "", event.get("reason") or ""
        writer.line(1, kind, reason, interval(event, now), source, message)


def last_seen(event: Obj) -> float:
    series = event.get("series") or {}
    text = (
        series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
    )  # fmt: skip
    return seconds_of(text) if text else 0.0


def first_seen(event: Obj) -> float:
    text = event.get("firstTimestamp") or event.get("eventTime")
    return seconds_of(text) if text else last_seen(event)


def interval(event: Obj, now: float) -> str:
    """`5m`, or `5m (x3 over 10m)`."""
    series = event.get("series") or {}
    count = series.get("count") or event.get("count") or 0
    last = human_duration(max(now - last_seen(event), 0))
    if count > 1:
        first = human_duration(max(now - first_seen(event), 0))
        return f"{last} (x{count} over {first})"
    return human_duration(max(now - first_seen(event), 0))
