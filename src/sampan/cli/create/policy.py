"""create namespace, quota, poddisruptionbudget, priorityclass.

Job: small cluster objects from the command line.
"""

import re

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.api.rules.selectors import SelectorError, parse_label_selector
from sampan.cli.common_flags import switch
from sampan.cli.create.generator import Kind, generator
from sampan.cli.create.parts import metadata, single_name
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session

BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist"}


def namespace(session: Session, values: Values) -> Obj:
    name = single_name(values)
    return {
        "apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name), "spec": {},
        "status": {},
    }  # fmt: skip


def quota(session: Session, values: Values) -> Obj:
    name = single_name(values)
    spec: Obj = {}
    hard = resource_list(values.text("hard"))
    if hard:
        spec["hard"] = hard
    if values["scopes"]:
        spec["scopes"] = values.text("scopes").split(",")
    return {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata(name), "spec": spec,
        "status": {},
    }  # fmt: skip


def resource_list(text: str) -> dict[str, str]:
    """`cpu=1,memory=1Gi`, in canonical quantities."""
    found = {}
    for pair in text.split(",") if text else ():
        parts = pair.split("=")
        if len(parts) != 2:
            raise CliError(f"Invalid argument syntax {pair}, expected <resource>=<value>")
        try:
            found[parts[0]] = quantity.canonical(parts[1])
        except quantity.QuantityError:
            raise CliError(BAD_QUANTITY) from None
    return found


def disruption_budget(session: Session, values: Values) -> Obj:
    name = single_name(values)
    if not values["selector"]:
        raise CliError("a selector must be specified")
    least, most = values.text("min-available"), values.text("max-unavailable")
    if not least and not most:
        raise CliError("one of min-available or max-unavailable must be specified")
    if least and most:
        raise CliError("min-available and max-unavailable cannot be both specified")
    spec: Obj = {}
    for flag, field in (("min-available", "minAvailable"), ("max-unavailable", "maxUnavailable")):
        text = values.text(flag)
        if not text:
            continue
        if not re.fullmatch(r"[0-9]+%?", text):
            raise CliError(f"invalid format specified for {flag}")
        spec[field] = text if text.endswith("%") else int(text)
    spec["selector"] = label_selector(values.text("selector"))
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name),
        "spec": spec,
        "status": {
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0
        },
    }  # fmt: skip


def label_selector(text: str) -> Obj:
    """The LabelSelector that a query on the command line stands for."""
    try:
        parsed = parse_label_selector(text)
    except SelectorError as error:
        raise CliError(f'couldn\'t parse the selector string "{text}": {error}') from error
    labels: dict[str, str] = {}
    expressions: list[Obj] = []
    for requirement in parsed.requirements:
        operator = str(requirement.operator)
        values = list(requirement.values)
        if operator in ("=", "=="):
            labels[requirement.key] = values[0]
        elif operator == "!=":
            raise CliError('"!=" is not a valid label selector operator')
        else:
            entry: Obj = {"key": requirement.key, "operator": _operator(operator)}
            if values:
                entry["values"] = sorted(values)
            expressions.append(entry)
    return {
        **({"matchLabels": labels} if labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }


def _operator(word: str) -> str:
    return _OPERATORS.get(word.lower(), word)


def priority_class(session: Session, values: Values) -> Obj:
    name = single_name(values)
    obj: Obj = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(name),
        "value": values["value"],
    }
    if values["global-default"]:
        obj["globalDefault"] = True
    if values["description"]:
        obj["description"] = values["description"]
    if values["preemption-policy"]:
        obj["preemptionPolicy"] = values["preemption-policy"]
    return obj


NAMESPACE = generator(
    "namespace", "namespace NAME [--dry-run=server|client|none] [options]",
    "Create a namespace with the specified name", namespace,
    Kind("namespaces", namespaced=False, aliases=("ns",)))  # fmt: skip
QUOTA = generator(
    "quota", "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2] [--dry-run=server|client|none] [options]",
    "Create a quota with the specified name", quota, Kind("resourcequotas", "quota", aliases=("resourcequota",)),
    (Flag("hard", usage="Comma-delimited resource=quantity pairs that define a hard limit."),
     Flag("scopes", usage="Comma-delimited quota scopes that must all match.")))  # fmt: skip
DISRUPTION_BUDGET = generator(
    "poddisruptionbudget", "poddisruptionbudget NAME --selector=SELECTOR --min-available=N [--dry-run=server|client|none] [options]",
    "Create a pod disruption budget with the specified name", disruption_budget,
    Kind("poddisruptionbudgets", "poddisruptionbudgets", "policy", aliases=("pdb",)),
    (Flag("max-unavailable", usage="The maximum number or percentage of unavailable pods."),
     Flag("min-available", usage="The minimum number or percentage of available pods."),
     Flag("selector", usage="A label selector to use for this budget.")))  # fmt: skip
PRIORITY_CLASS = generator(
    "priorityclass", "priorityclass NAME --value=VALUE --global-default=BOOL [--dry-run=server|client|none] [options]",
    "Create a priority class with the specified name", priority_class,
    Kind("priorityclasses", "priorityclass", "scheduling.k8s.io", namespaced=False, aliases=("pc",)),
    (Flag("description", usage="When this priority class should be used."),
     switch("global-default", "Whether this is the priority of pods that name no class."),
     Flag("preemption-policy", default="PreemptLowerPriority", usage="Never or PreemptLowerPriority."),
     Flag("value", "int32", 0, "The value of this priority class.")))  # fmt: skip
