"""Requests as the API server notes them."""

from sampan.core.telemetry.spans import Marks


def say_pod_create(marks: Marks, name: str = "web", namespace: str = "default") -> Marks:
    """It created that pod."""
    marks.verb, marks.group, marks.plural, marks.subresource = "create", "", "pods", ""
    marks.namespace, marks.name, marks.user, marks.phase = namespace, name, "admin", "Pending"
    return marks
