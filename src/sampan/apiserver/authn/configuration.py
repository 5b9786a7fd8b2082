"""AuthenticationConfiguration: the file of --authentication-config.

Job: the document → issuers and who may stay anonymous, or every thing that is wrong with it. Pure.
Invariant: a document with one wrong field is refused whole.
"""

import ssl
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from sampan.api.cel.language.errors import CompileError
from sampan.api.cel.program import Program
from sampan.api.configuration import ConfigReader
from sampan.api.objects import Obj
from sampan.api.validation.fields import Repeats
from sampan.apiserver.authn import expressions
from sampan.apiserver.authn.settings import EVERY_ALGORITHM, Checked, OidcSettings
from sampan.apiserver.outside.config_document import VERSIONS
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern
from sampan.core.tls import client_context

_KEY = lazy_pattern(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z0-9._~/-]+"
)
_EMAIL = lazy_pattern(r"\bclaims\s*(\.\s*\??\s*email\b|\[\s*['\"]email['\"]\s*\])")
_VERIFIED = lazy_pattern(
    r"\bclaims\s*(\.\s*\??\s*email_verified\b|\[\s*['\"]email_verified['\"]\s*\])"
)
_ISSUER_FIELDS = {
    "url", "discoveryURL", "certificateAuthority", "audiences", "audienceMatchPolicy",
    "egressSelectorType",
}  # fmt: skip
Compile = Callable[[str], Program]
_MAPPINGS: dict[str, Compile] = {
    "username": expressions.text, "groups": expressions.texts, "uid": expressions.text,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuthenticationRules:
    issuers: tuple[OidcSettings, ...] = ()
    # None: the document says nothing of it.
    anonymous: bool | None = None
    anonymous_paths: tuple[str, ...] = ()  # none: every path


def rules_of(document: Obj, own_issuers: Sequence[str] = ()) -> AuthenticationRules:
    """`own_issuers` sign service account tokens: nobody else may be them. Raises
    BadConfiguration."""
    reader = _Reader(own_issuers)
    found = reader.rules(document)
    reader.wrong.settle()
    return found


class _Reader:
    def __init__(self, own_issuers: Sequence[str]) -> None:
        self.wrong = ConfigReader()
        self._say, self._only = self.wrong.wrong, self.wrong.known
        self._own = own_issuers
        self._seen: set[str] = set()

    def rules(self, document: Obj) -> AuthenticationRules:
        self.wrong.document(document, "AuthenticationConfiguration", VERSIONS)
        self._only(document, {"apiVersion", "kind", "jwt", "anonymous"}, "")
        issuers = tuple(
            self._issuer(item, f"jwt[{index}]")
            for index, item in enumerate(document.get("jwt") or ())
        )
        anonymous = document.get("anonymous")
        if anonymous is None:
            return AuthenticationRules(issuers)
        self._only(anonymous, {"enabled", "conditions"}, "anonymous")
        paths = tuple(
            str(condition.get("path") or "") for condition in anonymous.get("conditions") or ()
        )
        if paths and not anonymous.get("enabled"):
            self._say("anonymous.conditions", "Invalid value: enabled should be set to true when "
                      "conditions are defined")  # fmt: skip
        return AuthenticationRules(issuers, anonymous.get("enabled") is True, paths)

    def _issuer(self, given: Obj, path: str) -> OidcSettings:
        self._only(
            given, {"issuer", "claimValidationRules", "claimMappings", "userValidationRules"}, path
        )
        issuer = given.get("issuer") or {}
        fields = self._where(issuer, f"{path}.issuer")
        fields |= self._mappings(given.get("claimMappings") or {}, f"{path}.claimMappings")
        required, checked = self._claim_rules(given, path)
        users = tuple(
            self._rule(rule, expressions.user_rule, f"{path}.userValidationRules[{index}]")
            for index, rule in enumerate(given.get("userValidationRules") or ())
        )
        made = OidcSettings(
            str(issuer.get("url") or ""), tuple(issuer.get("audiences") or ()),
            algorithms=EVERY_ALGORITHM, required_claims=required, claim_rules=checked,
            user_rules=users, **fields,
        )  # fmt: skip
        self._check_email(made, f"{path}.claimMappings.username.expression")
        return made

    def _where(self, issuer: Obj, path: str) -> dict[str, Any]:
        self._only(issuer, _ISSUER_FIELDS, path)
        url, elsewhere = str(issuer.get("url") or ""), str(issuer.get("discoveryURL") or "")
        self._check_url(url, f"{path}.url")
        if url in self._own:
            self._say(f"{path}.url", f'Invalid value: "{url}": URL must not overlap with '
                      "disallowed issuers")  # fmt: skip
        if url in self._seen:
            self._say(f"{path}.url", f'Duplicate value: "{url}"')
        self._seen.add(url)
        if elsewhere:
            self._check_url(elsewhere, f"{path}.discoveryURL")
            if elsewhere.rstrip("/") == url.rstrip("/"):
                self._say(f"{path}.discoveryURL", f'Invalid value: "{elsewhere}": discoveryURL '
                          "must be different from URL")  # fmt: skip
        if issuer.get("egressSelectorType"):
            self._say(f"{path}.egressSelectorType", "Forbidden: there is no egress selector here")
        self._check_audiences(issuer, path)
        pem = issuer.get("certificateAuthority")
        return {"discovery_url": elsewhere, "tls": self._trust(pem, path) if pem else None}

    def _check_audiences(self, issuer: Obj, path: str) -> None:
        audiences, policy = issuer.get("audiences") or (), issuer.get("audienceMatchPolicy") or ""
        if not audiences:
            self._say(f"{path}.audiences", "Required value: at least one jwt.audiences is required")
        if len(audiences) > 1 and policy != "MatchAny":
            self._say(f"{path}.audienceMatchPolicy", f'Invalid value: "{policy}": '
                      "audienceMatchPolicy must be MatchAny for multiple audiences")  # fmt: skip
        if len(audiences) == 1 and policy not in ("", "MatchAny"):
            why = "audienceMatchPolicy must be empty or MatchAny for single audience"
            self._say(f"{path}.audienceMatchPolicy", f'Invalid value: "{policy}": {why}')

    def _trust(self, pem: str, path: str) -> Callable[[], ssl.SSLContext]:
        try:
            client_context(ca_data=pem)
        except (ssl.SSLError, ValueError) as error:
            self._say(f"{path}.certificateAuthority", f"Invalid value: {error}")
        return lambda: client_context(ca_data=pem)

    def _mappings(self, mappings: Obj, path: str) -> dict[str, Any]:
        self._only(mappings, {"username", "groups", "uid", "extra"}, path)
        settings: dict[str, Any] = {}
        for where, compile_ in _MAPPINGS.items():
            given, here = mappings.get(where) or {}, f"{path}.{where}"
            if where == "username" and not given.get("claim") and not given.get("expression"):
                self._say(here, "Required value: claim or expression is required")
            self._check_mapping(given, here, where != "uid")
            if given.get("expression"):
                self._compile(given["expression"], compile_, f"{here}.expression")
            fields = (
                ("claim", "expression") if where == "uid" else ("claim", "prefix", "expression")
            )
            settings |= {f"{where}_{name}": str(given.get(name) or "") for name in fields}
        settings["username_prefix"] = settings["username_prefix"] or "-"
        return {**settings, "extra": self._extras(mappings.get("extra") or (), f"{path}.extra")}

    def _extras(self, given: Sequence[Obj], path: str) -> tuple[tuple[str, str], ...]:
        extra = tuple(self._extra(entry, f"{path}[{index}]") for index, entry in enumerate(given))
        is_repeated = Repeats()
        for index, (key, _) in enumerate(extra):
            if is_repeated(key):
                self._say(f"{path}[{index}].key", f'Duplicate value: "{key}"')
        return extra

    def _check_mapping(self, given: Obj, path: str, has_prefix: bool) -> None:
        self._only(given, {"claim", "expression"} | ({"prefix"} if has_prefix else set()), path)
        if given.get("claim") and given.get("expression"):
            self._say(path, "Invalid value: claim and expression can't both be set")
        if given.get("expression") and given.get("prefix") is not None:
            self._say(f"{path}.prefix", "Invalid value: prefix can't be set when expression is set")
        if has_prefix and given.get("claim") and given.get("prefix") is None:
            self._say(f"{path}.prefix", "Required value: prefix is required when claim is set. It "
                      "can be set to an empty string to disable prefixing")  # fmt: skip

    def _extra(self, given: Obj, path: str) -> tuple[str, str]:
        self._only(given, {"key", "valueExpression"}, path)
        key, expression = str(given.get("key") or ""), str(given.get("valueExpression") or "")
        if not _KEY.fullmatch(key):
            self._say(f"{path}.key", f'Invalid value: "{key}": must be a domain-prefixed path '
                      "(such as \"acme.io/foo\"), in lower case")  # fmt: skip
        domain = key.partition("/")[0]
        if domain.endswith(("k8s.io", "kubernetes.io")):
            self._say(f"{path}.key", f'Invalid value: "{key}": k8s.io, kubernetes.io and their '
                      "subdomains are reserved for Kubernetes use")  # fmt: skip
        if not expression:
            self._say(f"{path}.valueExpression", "Required value: valueExpression is required")
        else:
            self._compile(expression, expressions.texts, f"{path}.valueExpression")
        return key, expression

    def _claim_rules(
        self, given: Obj, path: str
    ) -> tuple[tuple[tuple[str, str], ...], tuple[Checked, ...]]:
        required, checked = [], []
        for index, rule in enumerate(given.get("claimValidationRules") or ()):
            here = f"{path}.claimValidationRules[{index}]"
            if rule.get("claim") and rule.get("expression"):
                self._say(here, "Invalid value: claim and expression can't both be set")
            elif rule.get("claim"):
                self._only(rule, {"claim", "requiredValue"}, here)
                required.append((str(rule["claim"]), str(rule.get("requiredValue") or "")))
            else:
                checked.append(self._rule(rule, expressions.claim_rule, here))
        return tuple(required), tuple(checked)

    def _rule(self, given: Obj, compile_: Compile, path: str) -> Checked:
        self._only(given, {"expression", "message"}, path)
        expression = str(given.get("expression") or "")
        if not expression:
            self._say(path, "Required value: claim or expression is required"
                      if "claim" in path else "Required value: expression is required")  # fmt: skip
        else:
            self._compile(expression, compile_, f"{path}.expression")
        return Checked(expression, str(given.get("message") or ""))

    def _compile(self, expression: str, compile_: Compile, path: str) -> None:
        try:
            compile_(expression)
        except CompileError as error:
            self._say(path, f'Invalid value: "{expression}": compilation failed: {error}')
        except ValueError as error:
            self._say(path, f'Invalid value: "{expression}": {error}')

    def _check_email(self, made: OidcSettings, path: str) -> None:
        """An address that nobody has verified is nobody's name."""
        if not _EMAIL.search(made.username_expression):
            return
        looked_at = [made.username_expression, *(item for _, item in made.extra)]
        looked_at += [rule.expression for rule in made.claim_rules]
        if not any(_VERIFIED.search(item) for item in looked_at):
            why = (
                "claims.email_verified must be used in claimMappings.username.expression or "
                "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression "
                "when claims.email is used in claimMappings.username.expression"
            )
            self._say(path, f'Invalid value: "{made.username_expression}": {why}')

    def _check_url(self, url: str, path: str) -> None:
        parts = urlsplit(url)
        if not url:
            self._say(path, "Required value: URL is required")
        elif parts.scheme != "https":
            self._say(path, f'Invalid value: "{url}": URL scheme must be https')
        elif parts.username or parts.password:
            self._say(path, f'Invalid value: "{url}": URL must not contain a username or password')
        elif parts.query or parts.fragment:
            self._say(path, f'Invalid value: "{url}": URL must not contain a query or a fragment')
