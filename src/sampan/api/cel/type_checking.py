"""Type checking of a policy against the kinds that it matches.

Job: the warnings of a ValidatingAdmissionPolicy's status, one for each expression. Pure.
Invariant: a warning changes nothing of how the policy works.
"""

from collections.abc import Callable, Iterator, Sequence

from sampan.api.cel import admission
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError
from sampan.api.cel.language.types import DYN, Type
from sampan.api.cel.policies import with_variables
from sampan.api.cel.program import compile_expression
from sampan.api.cel.schema_objects import SchemaObjects
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.served import served_resources

MOST_TYPES = 10


def expression_warnings(
    policy: Obj, objects: SchemaObjects, is_over: Callable[[], bool] = lambda: False
) -> list[Obj]:
    """`is_over`: it has taken long enough; what was not checked by then is not warned about."""
    spec = policy.get("spec") or {}
    environments: list[tuple[Resource, Environment]] = []
    for kind in kinds_to_check(spec, served_resources()):
        environment = _environment(spec, kind, objects, is_over)
        if environment is None:
            return []
        environments.append((kind, environment))
    found = []
    for path, text in _expressions(spec):
        if is_over():
            break
        said = "\n".join(
            f"{_gvk(kind)}: {trouble}\n"
            for kind, environment in environments
            if (trouble := _trouble(text, environment))
        )
        if said:
            found.append({"fieldRef": path, "warning": said})
    return found


def kinds_to_check(spec: Obj, resources: Sequence[Resource]) -> list[Resource]:
    """Those that rules name without wildcards, by group, version and kind."""
    found: list[Resource] = []
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        if any("*" in group for group in (*groups, *versions)):
            continue
        plurals = [
            resource for resource in rule.get("resources") or () if not set("*/") & set(resource)
        ]
        found += [
            resource
            for resource in resources
            if resource.group in groups
            and resource.version in versions
            and resource.plural in plurals
            and resource not in found
        ]
    return sorted(
        found[:MOST_TYPES], key=lambda match_: (match_.group, match_.version, match_.kind)
    )


def _expressions(spec: Obj) -> Iterator[tuple[str, str]]:
    for index, validation in enumerate(spec.get("validations") or ()):
        for key in ("expression", "messageExpression"):
            if (validation.get(key) or "").strip():
                yield f"spec.validations[{index}].{key}", validation[key]


def _environment(
    spec: Obj, kind: Resource, objects: SchemaObjects, is_over: Callable[[], bool]
) -> Environment | None:
    """None: it took too long."""
    shown = objects.type_of(_api_version(kind), kind.kind) or DYN
    param = spec.get("paramKind") or {}
    given = objects.type_of(param.get("apiVersion") or "", param.get("kind") or "") or DYN
    variables: dict[str, Type] = {}
    base = admission.environment(bool(param), True)
    declared = admission.variables_of(bool(param), True, shown, given)
    made = base.extended(declared, admission.Shapes(others=objects))
    for variable in spec.get("variables") or ():
        if is_over():
            return None
        variables[variable.get("name") or ""] = _type_of(variable.get("expression") or "", made)
        made = with_variables(base.extended(declared), variables, objects)
    return made


def _type_of(text: str, environment: Environment) -> Type:
    try:
        return compile_expression(text, environment).result_type
    except CompileError:
        return DYN


def _trouble(text: str, environment: Environment) -> str:
    try:
        compile_expression(text, environment)
    except CompileError as error:
        return str(error)
    return ""


def _api_version(kind: Resource) -> str:
    return f"{kind.group}/{kind.version}" if kind.group else kind.version


def _gvk(kind: Resource) -> str:
    return f"{kind.group}/{kind.version}, Kind={kind.kind}"
