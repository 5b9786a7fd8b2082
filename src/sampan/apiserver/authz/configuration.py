"""AuthorizationConfiguration: the file of --authorization-config.

Job: the document → the chain's authorizers, or every thing that is wrong with it. Pure but for the
    kubeconfigs that it names, which the caller reads.
Invariant: a document with one wrong field is refused whole.
"""

from collections.abc import Callable
from typing import Any

from sampan.api.configuration import ConfigReader
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.apiserver.authz import conditions
from sampan.apiserver.authz.settings import (
    MODES,
    AuthorizerSettings,
    WebhookAuthorizerSettings,
)
from sampan.apiserver.outside.config_document import VERSIONS
from sampan.apiserver.outside.webhook_client import Target
from sampan.core.durations import NANO, DurationError, parse_duration

_FIELDS = {
    "timeout", "authorizedTTL", "unauthorizedTTL", "cacheAuthorizedRequests",
    "cacheUnauthorizedRequests", "subjectAccessReviewVersion",
    "matchConditionSubjectAccessReviewVersion", "failurePolicy", "connectionInfo",
    "matchConditions",
}  # fmt: skip


def authorizers_of(
    document: Obj, target_of: Callable[[str], Target]
) -> tuple[AuthorizerSettings, ...]:
    """`target_of`: whom a kubeconfig names; raises ValueError. Raises BadConfiguration."""
    reader = _Reader(target_of)
    found = reader.authorizers(document)
    reader.wrong.settle()
    return found


class _Reader:
    def __init__(self, target_of: Callable[[str], Target]) -> None:
        self.wrong = ConfigReader()
        self._say, self._only = self.wrong.wrong, self.wrong.known
        self._target_of = target_of

    def authorizers(self, document: Obj) -> tuple[AuthorizerSettings, ...]:
        self.wrong.document(document, "AuthorizationConfiguration", VERSIONS)
        self._only(document, {"apiVersion", "kind", "authorizers"}, "")
        given = document.get("authorizers") or ()
        if not given:
            self._say("authorizers", "Required value: at least one authorization mode must be "
                      "defined")  # fmt: skip
        seen: set[str] = set()
        types: set[str] = set()
        found = []
        for index, item in enumerate(given):
            path = f"authorizers[{index}]"
            found.append(self._authorizer(item, path))
            mode, name = found[-1].mode, found[-1].name
            if name in seen:
                self._say(f"{path}.name", f'Duplicate value: "{name}"')
            if mode in types and mode != "Webhook":
                self._say(f"{path}.type", f'Duplicate value: "{mode}"')
            seen.add(name)
            types.add(mode)
        return tuple(found)

    def _authorizer(self, given: Obj, path: str) -> AuthorizerSettings:
        self._only(given, {"type", "name", "webhook"}, path)
        mode, name = str(given.get("type") or ""), str(given.get("name") or "")
        if mode not in MODES:
            listed = ", ".join(f'"{item}"' for item in sorted(MODES))
            self._say(f"{path}.type", f'Unsupported value: "{mode}": supported values: {listed}'
                      if mode else "Required value")  # fmt: skip
        if not name:
            self._say(f"{path}.name", "Required value")
        elif names.dns_subdomain(name):
            self._say(f"{path}.name", f'Invalid value: "{name}": authorizer name is invalid: '
                      f"{', '.join(names.dns_subdomain(name))}")  # fmt: skip
        webhook = given.get("webhook")
        if mode != "Webhook":
            if webhook is not None:
                self._say(f"{path}.webhook", "Invalid value: may only be specified when "
                          'type="Webhook"')  # fmt: skip
            return AuthorizerSettings(mode, name)
        if webhook is None:
            self._say(f"{path}.webhook", "Required value: required when type=Webhook")
            return AuthorizerSettings(mode, name)
        return self._webhook(name, webhook, f"{path}.webhook")

    def _webhook(self, name: str, given: Obj, path: str) -> AuthorizerSettings:
        self._only(given, _FIELDS, path)
        self._one_of(given, "failurePolicy", ("NoOpinion", "Deny"), path)
        self._one_of(given, "subjectAccessReviewVersion", ("v1",), path)
        written = tuple(
            str(condition.get("expression") or "")
            for condition in given.get("matchConditions") or ()
        )
        if written:
            self._one_of(given, "matchConditionSubjectAccessReviewVersion", ("v1",), path)
        for index, expression in enumerate(written):
            self._condition(expression, f"{path}.matchConditions[{index}].expression")
        timeout = self._seconds(given, "timeout", 0.0, path)
        if not 0 < timeout <= 30:
            self._say(f"{path}.timeout", "Invalid value: must be > 0s and <= 30s")
        return AuthorizerSettings(
            "Webhook", name, self._target(given.get("connectionInfo") or {}, path),
            WebhookAuthorizerSettings(
                self._ttl(given, "authorizedTTL", "cacheAuthorizedRequests", 300.0, path),
                self._ttl(given, "unauthorizedTTL", "cacheUnauthorizedRequests", 30.0, path),
                timeout, given.get("failurePolicy") == "Deny", written,
            ),
        )  # fmt: skip

    def _target(self, info: Obj, path: str) -> Target | None:
        where = f"{path}.connectionInfo"
        self._only(info, {"type", "kubeConfigFile"}, where)
        match info.get("type"):
            case "KubeConfigFile":
                file = str(info.get("kubeConfigFile") or "")
                if not file.startswith("/"):
                    self._say(f"{where}.kubeConfigFile", f'Invalid value: "{file}": must be an '
                              "absolute path")  # fmt: skip
                    return None
                try:
                    return self._target_of(file)
                except ValueError as error:
                    self._say(f"{where}.kubeConfigFile", f'Invalid value: "{file}": {error}')
            case "InClusterConfig":
                self._say(f"{where}.type", "Invalid value: this server runs in no cluster")
            case other:
                self._say(f"{where}.type", f'Unsupported value: "{other or ""}": supported values: '
                          '"InClusterConfig", "KubeConfigFile"')  # fmt: skip
        return None

    def _condition(self, expression: str, path: str) -> None:
        if not expression:
            self._say(path, "Required value")
            return
        try:
            conditions.compile_condition(expression)
        except ValueError as error:
            self._say(path, f'Invalid value: "{expression}": compilation failed: {error}')

    def _ttl(self, given: Obj, field: str, cached: str, default: float, path: str) -> float:
        if given.get(cached) is False:
            return 0.0
        seconds = self._seconds(given, field, default, path)
        if seconds <= 0:
            self._say(f"{path}.{field}", "Invalid value: must be > 0s")
        return seconds

    def _seconds(self, given: Obj, field: str, default: float, path: str) -> float:
        written: Any = given.get(field)
        if written is None:
            return default
        try:
            return parse_duration(str(written)) / NANO
        except DurationError as error:
            self._say(f"{path}.{field}", f'Invalid value: "{written}": {error}')
            return default or 1.0

    def _one_of(self, given: Obj, field: str, allowed: tuple[str, ...], path: str) -> None:
        found = given.get(field)
        if not found:
            self._say(f"{path}.{field}", "Required value")
        elif found not in allowed:
            listed = ", ".join(f'"{item}"' for item in allowed)
            self._say(
                f"{path}.{field}", f'Unsupported value: "{found}": supported values: {listed}'
            )
