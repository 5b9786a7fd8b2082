"""The expressions of an AuthenticationConfiguration, in CEL.

Job: compile an issuer's rules and mappings; evaluate them over claims, and over the mapped user.
Invariant: an expression of another type than its place wants is refused when it is compiled, or,
    where the type is not known before, makes the token a bad one.
"""

import functools
from collections.abc import Mapping
from typing import Any

from sampan.api.cel.catalog import KUBERNETES
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError, CostExceeded, EvaluationError
from sampan.api.cel.language.types import (
    BOOL,
    DYN,
    STRING,
    Type,
    is_dynamic,
    list_of,
    map_of,
    object_type,
)
from sampan.api.cel.program import Program, compile_expression
from sampan.apiserver.authn.jwt import BadToken
from sampan.apiserver.authn.settings import Checked, OidcSettings
from sampan.apiserver.authn.user import User

_STRINGS = list_of(STRING)
_USER = object_type("kubernetes.UserInfo")


class _Shapes:
    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        if name != _USER.name:
            return None
        strings = {"username": STRING, "uid": STRING}
        return {**strings, "groups": _STRINGS, "extra": map_of(STRING, _STRINGS)}


@functools.cache
def _environment(variable: str) -> Environment:
    of = {"claims": map_of(STRING, DYN), "user": _USER}[variable]
    return Environment({variable: of}, KUBERNETES, _Shapes())


def compile_claim(expression: str, variable: str, *wanted: Type) -> Program:
    """Raises CompileError or ValueError (of another type)."""
    program = compile_expression(expression, _environment(variable))
    if program.result_type not in wanted and not is_dynamic(program.result_type):
        raise ValueError(f"must evaluate to {' or '.join(map(str, wanted))}")
    return program


def claim_rule(expression: str) -> Program:
    return compile_claim(expression, "claims", BOOL)


def user_rule(expression: str) -> Program:
    return compile_claim(expression, "user", BOOL)


def text(expression: str) -> Program:
    return compile_claim(expression, "claims", STRING)


def texts(expression: str) -> Program:
    return compile_claim(expression, "claims", STRING, _STRINGS, list_of(DYN))


class Expressions:
    """Of one issuer. Raises CompileError or ValueError."""

    def __init__(self, settings: OidcSettings) -> None:
        named = (settings.username_expression, settings.uid_expression)
        self.username, self.uid = (text(item) if item else None for item in named)
        groups = settings.groups_expression
        self.groups = texts(groups) if groups else None
        self._extra = [(key, texts(expression)) for key, expression in settings.extra]
        self._claim_rules = [(rule, claim_rule(rule.expression)) for rule in settings.claim_rules]
        self._user_rules = [(rule, user_rule(rule.expression)) for rule in settings.user_rules]

    def check_claims(self, claims: dict[str, Any]) -> None:
        """Raises BadToken."""
        for rule, program in self._claim_rules:
            _require(rule, program, {"claims": claims})

    def check_user(self, user: User) -> None:
        """Raises BadToken."""
        if not self._user_rules:
            return
        extra = {key: list(values) for key, values in user.extra.items()}
        shown = {"username": user.name, "uid": user.uid, "groups": list(user.groups),
                 "extra": extra}  # fmt: skip
        for rule, program in self._user_rules:
            _require(rule, program, {"user": shown})

    def extra(self, claims: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        found = {key: strings_of(program, claims) for key, program in self._extra}
        return {key: values for key, values in found.items() if values}


def string_of(program: Program, claims: dict[str, Any]) -> str:
    """Raises BadToken."""
    found = _value(program, {"claims": claims})
    if not isinstance(found, str):
        raise BadToken(f"oidc: expression '{program.source}' gives no text")
    return found


def strings_of(program: Program, claims: dict[str, Any]) -> tuple[str, ...]:
    """One text, or a list of them; nothing, null and "" stand for none. Raises BadToken."""
    found = _value(program, {"claims": claims})
    if found is None or found == "":
        return ()
    several = [found] if isinstance(found, str) else found
    if not isinstance(several, list) or not all(isinstance(item, str) for item in several):
        raise BadToken(f"oidc: expression '{program.source}' gives neither text nor texts")
    return tuple(item for item in several if item)


def _require(rule: Checked, program: Program, variables: Mapping[str, Any]) -> None:
    if _value(program, variables) is not True:
        why = rule.message or f"expression '{rule.expression}' is not true"
        raise BadToken(f"oidc: validation expression '{rule.expression}' failed: {why}")


def _value(program: Program, variables: Mapping[str, Any]) -> object:
    try:
        found: object = program.evaluate(variables)
    except (EvaluationError, CostExceeded) as error:
        raise BadToken(f"oidc: expression '{program.source}' failed: {error}") from error
    return found


__all__ = ["CompileError", "Expressions", "string_of", "strings_of"]
