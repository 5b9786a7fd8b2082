"""Expressions of admission policies, compiled; and what is refused when they are written.

Job: the spec of an admission policy → programs, each with its place; what is wrong with them.
Invariant: a variable sees the variables before it, and no others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from sampan.api.cel import admission
from sampan.api.cel.language.environment import Environment, Objects
from sampan.api.cel.language.errors import CompileError
from sampan.api.cel.language.types import BOOL, DYN, NULL, STRING, Type, list_of
from sampan.api.cel.program import Program, compile_expression
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a policy; `program` is None where it does not compile."""

    path: str  # spec.validations[0].expression
    text: str
    program: Program | None
    trouble: str = ""  # why not


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    conditions: tuple[Expression, ...] = ()
    variables: dict[str, Expression] = field(default_factory=dict)
    validations: tuple[Expression, ...] = ()
    messages: tuple[Expression | None, ...] = ()  # one for each validation
    annotations: tuple[Expression, ...] = ()
    mutations: tuple[Expression, ...] = ()

    def troubles(self) -> list[Expression]:
        """In the order in which they are written."""
        every = (
            *self.conditions,
            *self.variables.values(),
            *(
                item
                for pair in zip(self.validations, self.messages, strict=True)
                for item in pair
                if item is not None
            ),
            *self.annotations,
            *self.mutations,
        )
        return [item for item in every if item.trouble]


class _Compiler:
    """The environments of one policy: its variables are known one after the other."""

    def __init__(self, params: bool, patches: bool) -> None:
        self._params, self._patches = params, patches
        self._variables: dict[str, Type] = {}

    def expression(
        self, path: str, text: str, wanted: Sequence[Type], authorizer: bool = True
    ) -> Expression:
        return compile_at(path, text, self._environment(authorizer), wanted)

    def condition(self, path: str, text: str) -> Expression:
        """Conditions come before the variables and do not see them."""
        plain = admission.environment(self._params, True)
        return compile_at(path, text, plain, (BOOL,))

    def variable(self, path: str, name: str, text: str) -> Expression:
        found = self.expression(path, text, ())
        self._variables[name] = DYN if found.program is None else found.program.result_type
        return found

    def _environment(self, authorizer: bool) -> Environment:
        base = admission.environment(self._params, authorizer, self._patches)
        if not self._variables:
            return base
        return with_variables(base, self._variables, patches=self._patches)


def with_variables(
    base: Environment,
    variables: Mapping[str, Type],
    others: Objects | None = None,
    patches: bool = False,
) -> Environment:
    shapes = admission.Shapes(variables, others, patches)
    return base.extended({"variables": admission.VARIABLES}, shapes)


def compile_at(
    path: str, text: str, environment: Environment, wanted: Sequence[Type]
) -> Expression:
    """`wanted`: the types that it may have; none: any."""
    try:
        program = compile_expression(text, environment)
    except CompileError as error:
        return Expression(path, text, None, f"compilation failed: {error}")
    if wanted and program.result_type not in wanted:
        got = program.result_type
        if len(wanted) == 1:
            return Expression(path, text, None, f"must evaluate to {wanted[0]} but got {got}")
        listed = " ".join(_type_text(item) for item in wanted)
        why = f"must evaluate to one of [{listed}] but got {_type_text(got)}"
        return Expression(path, text, None, why)
    return Expression(path, text, program)


def _type_text(one: Type) -> str:
    return "null_type" if one == NULL else str(one)


def compile_conditions(
    conditions: Sequence[Obj], path: str, params: bool = False
) -> tuple[Expression, ...]:
    """Match conditions of a webhook or a policy."""
    compiler = _Compiler(params, False)
    return tuple(
        compiler.condition(
            f"{path}[{index}].expression", (condition.get("expression") or "").strip()
        )
        for index, condition in enumerate(conditions)
    )


def compile_validating(spec: Obj) -> CompiledPolicy:
    compiler = _Compiler(bool(spec.get("paramKind")), False)
    conditions = spec.get("matchConditions") or ()
    variables = _variables(spec, compiler)
    validations, messages = [], []
    for index, validation in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        text = validation.get("expression") or ""
        validations.append(compiler.expression(f"{path}.expression", text, (BOOL,)))
        messages.append(_message(compiler, f"{path}.messageExpression", validation))
    annotations = [
        compiler.expression(
            f"spec.auditAnnotations[{index}].valueExpression",
            (annotation.get("valueExpression") or "").strip(),
            (STRING, NULL),
        )
        for index, annotation in enumerate(spec.get("auditAnnotations") or ())
    ]
    return CompiledPolicy(
        compile_conditions(conditions, "spec.matchConditions", bool(spec.get("paramKind"))),
        variables,
        tuple(validations),
        tuple(messages),
        tuple(annotations),
    )


def _message(compiler: _Compiler, path: str, validation: Obj) -> Expression | None:
    text = validation.get("messageExpression") or ""
    if not text.strip():
        return None
    # As upstream: a message does not ask the authorizer.
    return compiler.expression(path, text, (STRING,), authorizer=False)


def compile_mutating(spec: Obj) -> CompiledPolicy:
    params = bool(spec.get("paramKind"))
    compiler = _Compiler(params, True)
    conditions = compile_conditions(
        spec.get("matchConditions") or (), "spec.matchConditions", params
    )
    variables = _variables(spec, compiler)
    mutations = tuple(
        _mutation(compiler, f"spec.mutations[{index}]", mutation)
        for index, mutation in enumerate(spec.get("mutations") or ())
    )
    return CompiledPolicy(conditions, variables, mutations=mutations)


def _mutation(compiler: _Compiler, path: str, mutation: Obj) -> Expression:
    if mutation.get("patchType") == "ApplyConfiguration":
        key, wanted = "applyConfiguration", admission.PATCH_OBJECT
    else:
        key, wanted = "jsonPatch", list_of(admission.JSON_PATCH)
    text = (mutation.get(key) or {}).get("expression") or ""
    return compiler.expression(f"{path}.{key}.expression", text, (wanted,))


def _variables(spec: Obj, compiler: _Compiler) -> dict[str, Expression]:
    return {
        variable.get("name") or "": compiler.variable(
            f"spec.variables[{index}].expression",
            variable.get("name") or "",
            variable.get("expression") or "",
        )
        for index, variable in enumerate(spec.get("variables") or ())
    }
