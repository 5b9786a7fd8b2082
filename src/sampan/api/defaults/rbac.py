"""Defaults of role bindings: the group of the role and of the subjects.

Job: fill in API groups, as upstream does.
Invariant: a service account's group is the core one, which is shown as nothing.
"""

from sampan.api.objects import Obj

GROUP = "rbac.authorization.k8s.io"


def default_binding(obj: Obj) -> None:
    role = obj.get("roleRef")
    if role is not None and not role.get("apiGroup"):
        role["apiGroup"] = GROUP
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = GROUP
