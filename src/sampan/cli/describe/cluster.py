"""Namespaces, quotas, limits, access, data, described.

Job: the cluster's own objects as lines.
"""

import base64

from sampan.api.objects import Obj
from sampan.cli.describe.writer import Writer, long_time, pairs_text, selector_text

QUOTA_SCOPES = {
    "Terminating": "Matches all pods that have an active deadline. These pods have a limited "
    "lifespan on a node before being actively terminated by the system.",
    "NotTerminating": "Matches all pods that do not have an active deadline. These pods usually "
    "include long running pods whose container command is not expected to terminate.",
    "BestEffort": "Matches all pods that do not have resource requirements set. These pods have a "
    "best effort quality of service.",
    "NotBestEffort": "Matches all pods that have at least one resource requirement set. These pods "
    "have a burstable or guaranteed quality of service.",
}


def config_map(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    writer.line(0, "\nData\n====")
    data = obj.get("data") or {}
    for key in sorted(data):
        writer.line(0, f"{key}:\n----\n{data[key]}\n".replace("\t", "        "))
    writer.line(0, "\nBinaryData\n====")
    binary = obj.get("binaryData") or {}
    for key in sorted(binary):
        writer.line(0, f"{key}: {len(base64.b64decode(binary[key]))} bytes")
    writer.line(0, "")


def secret(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    writer.line(0, "")
    writer.line(0, "Type:", obj.get("type") or "")
    writer.line(0, "\nData\n====")
    data = obj.get("data") or {}
    for key in sorted(data):
        content = base64.b64decode(data[key])
        if key == "token" and obj.get("type") == "kubernetes.io/service-account-token":
            writer.line(0, f"{key}:", content.decode(errors="replace"))
        else:
            writer.line(0, f"{key}:", f"{len(content)} bytes")


def priority_class(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Value:", obj["value"])
    writer.line(0, "GlobalDefault:", "true" if obj.get("globalDefault") else "false")
    writer.line(0, "PreemptionPolicy:", obj.get("preemptionPolicy") or "")
    writer.line(0, "Description:", obj.get("description") or "")
    writer.line(0, "Annotations:", pairs_text(obj["metadata"].get("annotations")))


def service_account(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj)
    names = [item["name"] for item in obj.get("imagePullSecrets") or []]
    writer.many("Image pull secrets:", names)


def disruption_budget(writer: Writer, obj: Obj, now: float) -> None:
    spec, status = obj["spec"], obj.get("status") or {}
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    if spec.get("minAvailable") is not None:
        writer.line(0, "Min available:", spec["minAvailable"])
    elif spec.get("maxUnavailable") is not None:
        writer.line(0, "Max unavailable:", spec["maxUnavailable"])
    selector = spec.get("selector")
    writer.line(0, "Selector:", selector_text(selector) if selector else "<unset>")
    writer.line(0, "Status:")
    for title, field in (
        ("Allowed disruptions:", "disruptionsAllowed"), ("Current:", "currentHealthy"),
        ("Desired:", "desiredHealthy"), ("Total:", "expectedPods"),
    ):  # fmt: skip
        writer.line(2, title, status.get(field) or 0)


def rules(writer: Writer, obj: Obj) -> None:
    from sampan.cli.describe.access_rules import breakdown

    writer.head(obj, namespaced=False)
    writer.line(0, "PolicyRule:")
    writer.line(1, "Resources", "Non-Resource URLs", "Resource Names", "Verbs")
    writer.line(1, "---------", "-----------------", "--------------", "-----")
    for row in breakdown(obj.get("rules") or []):
        writer.line(1, *row)


def role(writer: Writer, obj: Obj, now: float) -> None:
    rules(writer, obj)


def binding(writer: Writer, obj: Obj, now: float) -> None:
    writer.head(obj, namespaced=False)
    writer.line(0, "Role:")
    writer.line(1, "Kind:", obj["roleRef"]["kind"])
    writer.line(1, "Name:", obj["roleRef"]["name"])
    writer.line(0, "Subjects:")
    writer.line(1, "Kind", "Name", "Namespace")
    writer.line(1, "----", "----", "---------")
    for subject in obj.get("subjects") or []:
        writer.line(1, subject["kind"], subject["name"], subject.get("namespace") or "")


def quota(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    _write_scopes(writer, obj["spec"], 0, " ")
    writer.line(0, "Resource", "Used", "Hard")
    writer.line(0, "--------", "----", "----")
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    for name in sorted(hard):
        writer.line(0, name, used.get(name, "0"), hard[name])


def _write_scopes(writer: Writer, spec: Obj, level: int, space: str) -> None:
    scopes = sorted(spec.get("scopes") or [])
    if scopes:
        writer.line(level, "Scopes:", ", ".join(scopes))
    for scope in scopes:
        if scope in QUOTA_SCOPES:
            writer.line(level, f"{space}* {QUOTA_SCOPES[scope]}")


def limits_rows(obj: Obj) -> list[list[str]]:
    rows = []
    for limit in obj["spec"].get("limits") or []:
        fields = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")
        names = sorted({name for field in fields for name in limit.get(field) or {}})
        for name in names:
            rows.append(
                [
                    limit["type"],
                    name,
                    *((limit.get(field) or {}).get(name, "-") for field in fields),
                ]
            )
    return rows


LIMIT_TITLES = [
    "Type",
    "Resource",
    "Min",
    "Max",
    "Default Request",
    "Default Limit",
    "Max Limit/Request Ratio",
]


def limits(writer: Writer, obj: Obj, now: float) -> None:
    writer.line(0, "Name:", obj["metadata"]["name"])
    writer.line(0, "Namespace:", obj["metadata"]["namespace"])
    writer.line(0, *LIMIT_TITLES)
    writer.line(0, *("-" * len(title) for title in LIMIT_TITLES))
    for row in limits_rows(obj):
        writer.line(0, *row)


def namespace(writer: Writer, obj: Obj, quotas: list[Obj], ranges: list[Obj]) -> None:
    status = obj.get("status") or {}
    writer.head(obj, namespaced=False)
    writer.line(0, "Status:", status.get("phase") or "")
    dated_conditions(writer, status.get("conditions") or [])
    writer.line(0, "")
    if not quotas:
        writer.line(0, "No resource quota.")
    else:
        writer.line(0, "Resource Quotas")
        for entry in sorted(quotas, key=lambda quota: str(quota["metadata"]["name"])):
            _write_quota_of_namespace(writer, entry)
    writer.line(0, "")
    if not ranges:
        writer.line(0, "No LimitRange resource.")
        return
    writer.line(0, "Resource Limits")
    writer.line(0, *[f" {LIMIT_TITLES[0]}", *LIMIT_TITLES[1:]])
    writer.line(0, *[" ----", *("-" * len(title) for title in LIMIT_TITLES[1:])])
    for entry in ranges:
        for row in limits_rows(entry):
            writer.line(0, *[f" {row[0]}", *row[1:]])


def _write_quota_of_namespace(writer: Writer, quota_obj: Obj) -> None:
    writer.line(1, "Name:", quota_obj["metadata"]["name"])
    _write_scopes(writer, quota_obj["spec"], 1, "")
    writer.line(1, "Resource", "Used", "Hard")
    writer.line(1, "--------", "---", "---")
    status = quota_obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    for name in sorted(hard):
        writer.line(1, name, used.get(name, "0"), hard[name])


def dated_conditions(writer: Writer, conditions: list[Obj]) -> None:
    if not conditions:
        return
    writer.line(0, "Conditions:")
    writer.line(1, "Type", "Status", "LastTransitionTime", "Reason", "Message")
    writer.line(1, "----", "------", "------------------", "------", "-------")
    for condition in conditions:
        writer.line(
            1,
            condition["type"],
            condition["status"],
            long_time(condition.get("lastTransitionTime")),
            condition.get("reason") or "",
            condition.get("message") or "",
        )
