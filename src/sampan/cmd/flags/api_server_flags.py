"""Flags of the API server: authentication, authorization, admission, audit; upstream's names.

Job: the flags, and the choices they make as one frozen value. Reading the files that they name is
    security_settings.py's.
"""

import argparse
from typing import Any

from sampan.cmd.flags import values
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SecurityChoices:
    authentication_config: str = ""
    authorization_config: str = ""
    authorization_modes: tuple[str, ...] = ()  # Node, RBAC
    authorization_policy_file: str = ""
    authorization_webhook_file: str = ""
    token_file: str = ""
    token_webhook_file: str = ""
    account_key_files: tuple[str, ...] = ()
    account_issuers: tuple[str, ...] = ()
    account_extend: str = "true"
    anonymous: str = ""  # health
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_ca_file: str = ""
    oidc_username_claim: str = "sub"
    oidc_username_prefix: str = ""
    oidc_groups_claim: str = ""
    oidc_groups_prefix: str = ""
    oidc_required: tuple[str, ...] = ()
    proxy_ca_file: str = ""
    proxy_names: tuple[str, ...] = ()
    enabled_plugins: tuple[str, ...] = ()
    disabled_plugins: tuple[str, ...] = ()
    admission_file: str = ""
    not_ready_seconds: int = 300
    unreachable_seconds: int = 300
    audit_policy_file: str = ""
    audit_log: str = ""
    audit_max_megabytes: int = 100
    audit_max_backups: int = 0
    audit_max_days: int = 0
    audit_webhook_file: str = ""
    encryption_file: str = ""
    fairness: str = "true"
    reads_in_flight: int = 400
    writes_in_flight: int = 200
    ui: str = "true"


# (flag, field, kind, help); kind: text, names (a list with commas), many (repeated), number
_FLAGS = (
    ("--authentication-config", "authentication_config", "text", "an AuthenticationConfiguration"),
    ("--authorization-config", "authorization_config", "text", "an AuthorizationConfiguration"),
    ("--authorization-mode", "authorization_modes", "names", "default: Node,RBAC"),
    ("--authorization-policy-file", "authorization_policy_file", "text", "for ABAC"),
    ("--authorization-webhook-config-file", "authorization_webhook_file", "text", "for Webhook"),
    ("--token-auth-file", "token_file", "text", 'CSV: token,user,uid,"group,group"'),
    ("--authentication-token-webhook-config-file", "token_webhook_file", "text", "a kubeconfig"),
    ("--service-account-key-file", "account_key_files", "many", "keys that only verify; repeat"),
    ("--service-account-issuer", "account_issuers", "many", "the first one signs; repeat"),
    (
        "--service-account-extend-token-expiration",
        "account_extend",
        "text",
        "true (default), false",
    ),
    ("--anonymous-auth", "anonymous", "text", "health (default), true or false"),
    ("--oidc-issuer-url", "oidc_issuer", "text", "https://…"),
    ("--oidc-client-id", "oidc_client_id", "text", "the audience that tokens must have"),
    ("--oidc-ca-file", "oidc_ca_file", "text", "who signs the issuer's certificate"),
    ("--oidc-username-claim", "oidc_username_claim", "text", "default: sub"),
    ("--oidc-username-prefix", "oidc_username_prefix", "text", "- for none"),
    ("--oidc-groups-claim", "oidc_groups_claim", "text", ""),
    ("--oidc-groups-prefix", "oidc_groups_prefix", "text", ""),
    ("--oidc-required-claim", "oidc_required", "many", "KEY=VALUE; repeat"),
    ("--requestheader-client-ca-file", "proxy_ca_file", "text", "signs authenticating proxies"),
    ("--requestheader-allowed-names", "proxy_names", "names", "their common names; none: any"),
    ("--enable-admission-plugins", "enabled_plugins", "names", "beside the default ones"),
    ("--disable-admission-plugins", "disabled_plugins", "names", "of the default ones"),
    ("--admission-control-config-file", "admission_file", "text", "an AdmissionConfiguration"),
    ("--default-not-ready-toleration-seconds", "not_ready_seconds", "number", "default: 300"),
    ("--default-unreachable-toleration-seconds", "unreachable_seconds", "number", "default: 300"),
    ("--audit-policy-file", "audit_policy_file", "text", "what is noted of requests"),
    ("--audit-log-path", "audit_log", "text", "where it is noted"),
    ("--audit-log-maxsize", "audit_max_megabytes", "number", "before rotation (default: 100)"),
    ("--audit-log-maxbackup", "audit_max_backups", "number", "old files kept; 0: all"),
    ("--audit-log-maxage", "audit_max_days", "number", "days that they are kept; 0: for ever"),
    ("--audit-webhook-config-file", "audit_webhook_file", "text", "a kubeconfig"),
    ("--encryption-provider-config", "encryption_file", "text", "an EncryptionConfiguration"),
    ("--enable-priority-and-fairness", "fairness", "text", "true (default) or false"),
    ("--max-requests-inflight", "reads_in_flight", "number", "default: 400"),
    ("--max-mutating-requests-inflight", "writes_in_flight", "number", "default: 200"),
    ("--ui", "ui", "text", "true (default) or false: the page at /ui/"),
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("who may come in and what may pass (docs/authentication.md)")
    plain = SecurityChoices()
    for flag, field, kind, text in _FLAGS:
        metavar = {"names": "A,B", "number": "N"}.get(kind, "VALUE")
        if flag.endswith(("-file", "-path", "-config")):
            metavar = "FILE"
        options: dict[str, Any] = {"dest": field, "metavar": metavar, "help": text or None}
        match kind:
            case "names":
                options |= {"type": values.names, "default": getattr(plain, field)}
            case "many":
                options |= {"action": "append", "default": []}
            case "number":
                options |= {"type": int, "default": getattr(plain, field)}
            case _:
                options |= {"default": getattr(plain, field)}
        group.add_argument(flag, **options)


def choices(given: argparse.Namespace) -> SecurityChoices:
    found: dict[str, Any] = {field: getattr(given, field) for _, field, _, _ in _FLAGS}
    repeated = {key: tuple(match_) for key, match_ in found.items() if isinstance(match_, list)}
    return SecurityChoices(**(found | repeated))
