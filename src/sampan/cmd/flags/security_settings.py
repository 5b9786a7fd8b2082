"""The files that the API server's flags name, read into its settings.

Job: SecurityChoices → fields of ApiServerSettings.
Invariant: a file that cannot be read or means nothing stops the start with one sentence.
"""

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from sampan.api.objects import Obj
from sampan.apiserver.admission.settings import (
    AdmissionSettings,
    EventLimit,
    ImagePolicySettings,
    NodeSelectorSettings,
    PodSecuritySettings,
    TolerationSettings,
)
from sampan.apiserver.audit.sinks import AuditFile
from sampan.apiserver.authn.settings import PUBLIC_PATHS, FrontProxySettings, OidcSettings
from sampan.apiserver.authz.settings import MODES
from sampan.apiserver.outside.followed_files import Source
from sampan.apiserver.outside.webhook_client import Target
from sampan.apiserver.settings import ApiServerSettings
from sampan.client import kubeconfig
from sampan.cmd.errors import CannotStart, reason_of
from sampan.cmd.flags.api_server_flags import SecurityChoices
from sampan.core.tls import client_context

T = TypeVar("T")
_MEGABYTE = 1024 * 1024
DEFAULT_MODES = ("Node", "RBAC")
_PATHS = {"health": PUBLIC_PATHS, "true": None, "false": frozenset[str]()}


def server_settings(chosen: SecurityChoices, client_ca_pem: bytes) -> dict[str, Any]:
    """Fields of ApiServerSettings. Raises CannotStart."""
    _check(chosen)
    settings: dict[str, Any] = {
        "authorization_modes": chosen.authorization_modes or DEFAULT_MODES,
        "abac_policy": _text(chosen.authorization_policy_file),
        "authorization_webhook": _target(chosen.authorization_webhook_file),
        "token_file": _text(chosen.token_file),
        "token_webhook": _target(chosen.token_webhook_file),
        "token_other_keys_pem": _account_keys(chosen),
        "anonymous_paths": _PATHS[chosen.anonymous or "health"],
        "bootstrap_tokens": True,
        "token_extend": chosen.account_extend == "true",
        "oidc": _oidc(chosen),
        "admission": _admission(chosen),
        "audit_policy": document(chosen.audit_policy_file),
        "audit_file": _audit_file(chosen),
        "audit_webhook": _target(chosen.audit_webhook_file),
        "encryption": document(chosen.encryption_file),
        "client_ca_pem": client_ca_pem,
        "request_seats": _seats(chosen),
        "page": chosen.ui == "true",
        "max_requests_in_flight": chosen.reads_in_flight,
        "max_mutating_requests_in_flight": chosen.writes_in_flight,
    }
    if chosen.proxy_ca_file:
        pem = _text(chosen.proxy_ca_file).encode()
        settings["front_proxy"] = FrontProxySettings(pem, chosen.proxy_names)
    settings |= _configured_access(chosen)
    if chosen.account_issuers:
        first = chosen.account_issuers[0]
        settings |= {
            "token_issuer": first,
            "token_other_issuers": chosen.account_issuers[1:],
            "token_audiences": (first,),
        }
    return settings


def _seats(chosen: SecurityChoices) -> int:
    """As upstream: the seats of all priority levels are both limits together."""
    together = chosen.reads_in_flight + chosen.writes_in_flight
    return together if chosen.fairness == "true" else 0


def _configured_access(chosen: SecurityChoices) -> dict[str, Any]:
    """What --authentication-config and --authorization-config say, instead of flags."""
    found: dict[str, Any] = {}
    # CEL and all that is loaded for whoever has such a file.
    if chosen.authentication_config:
        from sampan.cmd.flags.access_files import authentication

        if chosen.oidc_issuer:
            raise CannotStart("authentication-config file and oidc-* flags are mutually exclusive")
        issuers = authentication(chosen.authentication_config, _own_issuers(chosen))
        found["authentication_config"] = issuers
        rules = _now(issuers, chosen.authentication_config)
        if rules.anonymous is not None:
            if chosen.anonymous:
                raise CannotStart(
                    "--anonymous-auth flag cannot be set when anonymous field is configured in "
                    "authentication configuration file"
                )
            paths = frozenset(rules.anonymous_paths) or None
            found["anonymous_paths"] = paths if rules.anonymous else frozenset()
    if chosen.authorization_config:
        from sampan.cmd.flags.access_files import authorization

        source = authorization(chosen.authorization_config, _webhook_target)
        found["authorization_config"] = source
        _now(source, chosen.authorization_config)
    return found


def _now(source: Source[T], path: str) -> T:
    try:
        return source.now()
    except (OSError, ValueError) as error:
        raise CannotStart(f"{path}: {error}") from error


def _own_issuers(chosen: SecurityChoices) -> tuple[str, ...]:
    return chosen.account_issuers or (ApiServerSettings().token_issuer,)


def _webhook_target(path: str) -> Target:
    try:
        found = _target(path)
    except CannotStart as error:
        raise ValueError(str(error)) from error
    assert found is not None
    return found


def _check(chosen: SecurityChoices) -> None:
    for wrong, message in (*_wrong_access(chosen), *_wrong_rest(chosen)):
        if wrong:
            raise CannotStart(message)


def _wrong_access(chosen: SecurityChoices) -> Iterator[tuple[object, str]]:
    """(is it so, what is wrong then)"""
    modes = chosen.authorization_modes
    yield (
        chosen.authorization_config and (modes or chosen.authorization_webhook_file),
        (
            "--authorization-config can not be specified when --authorization-mode or "
            "--authorization-webhook-* flags are defined"
        ),
    )
    for mode in modes:
        known = ", ".join(MODES)
        yield mode not in MODES, f"--authorization-mode: {mode!r} is none of {known}"
    yield (
        "ABAC" in modes and not chosen.authorization_policy_file,
        ("the mode ABAC needs --authorization-policy-file"),
    )
    yield (
        "Webhook" in modes and not chosen.authorization_webhook_file,
        ("the mode Webhook needs --authorization-webhook-config-file"),
    )
    yield (
        chosen.anonymous and chosen.anonymous not in _PATHS,
        ("--anonymous-auth is health, true or false"),
    )
    is_https = chosen.oidc_issuer.startswith("https://")
    yield (
        chosen.oidc_issuer and not (chosen.oidc_client_id and is_https),
        ("--oidc-issuer-url is an https URL, and needs --oidc-client-id"),
    )


def _wrong_rest(chosen: SecurityChoices) -> Iterator[tuple[object, str]]:
    yield (
        chosen.account_extend not in ("true", "false"),
        ("--service-account-extend-token-expiration is true or false"),
    )
    yield (
        chosen.fairness not in ("true", "false"),
        ("--enable-priority-and-fairness is true or false"),
    )
    yield chosen.ui not in ("true", "false"), "--ui is true or false"
    yield (
        min(chosen.reads_in_flight, chosen.writes_in_flight) < 1,
        ("the limits of requests in flight are at least 1"),
    )
    noted = chosen.audit_log or chosen.audit_webhook_file
    yield noted and not chosen.audit_policy_file, "an audit log needs --audit-policy-file"
    yield (
        chosen.audit_policy_file and not noted,
        ("--audit-policy-file needs --audit-log-path or --audit-webhook-config-file"),
    )


def _text(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"cannot read {path}: {reason_of(error)}") from error


def _account_keys(chosen: SecurityChoices) -> bytes:
    if not chosen.account_key_files:
        return b""
    from sampan.apiserver.authn.jwt_keys import verifying_keys  # who names none does not wait

    keys = {path: _text(path).encode() for path in chosen.account_key_files}
    for path, pem in keys.items():
        try:
            found = verifying_keys(pem)
        except ValueError as error:
            raise CannotStart(f"--service-account-key-file {path}: {error}") from error
        if not found:
            raise CannotStart(f"--service-account-key-file {path}: there is no key in it")
    return b"\n".join(keys.values())


def document(path: str) -> Obj | None:
    if not path:
        return None
    import yaml

    try:
        found = yaml.load(_text(path), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise CannotStart(f"{path} is no YAML: {reason_of(error)}") from error
    if not isinstance(found, dict):
        raise CannotStart(f"{path} holds no object")
    return found


def _target(path: str) -> Target | None:
    """Whom to call, from a file in the format of a kubeconfig."""
    if not path:
        return None
    try:
        found = kubeconfig.load(path, {}, "").connection()
    except kubeconfig.KubeconfigError as error:
        raise CannotStart(str(error)) from error

    def tls() -> ssl.SSLContext:
        return client_context(
            ca_data=found.ca, pair_data=found.pair,
            verify=not found.insecure_skip_tls_verify,
        )  # fmt: skip

    return Target(found.server, tls, found.tls_server_name, found.token)


def _oidc(chosen: SecurityChoices) -> tuple[OidcSettings, ...]:
    if not chosen.oidc_issuer:
        return ()
    tls: Callable[[], ssl.SSLContext] | None = None
    if chosen.oidc_ca_file:
        tls = lambda: client_context(ca_path=chosen.oidc_ca_file)  # noqa: E731  # asked later
    required = tuple(item.partition("=")[::2] for item in chosen.oidc_required)
    made = OidcSettings(
        chosen.oidc_issuer, (chosen.oidc_client_id,), tls, chosen.oidc_username_claim,
        chosen.oidc_username_prefix, chosen.oidc_groups_claim, chosen.oidc_groups_prefix,
        required,
    )  # fmt: skip
    return (made,)


def _audit_file(chosen: SecurityChoices) -> AuditFile | None:
    if not chosen.audit_log:
        return None
    return AuditFile(
        str(Path(chosen.audit_log).absolute()), chosen.audit_max_megabytes * _MEGABYTE,
        chosen.audit_max_backups, chosen.audit_max_days,
    )  # fmt: skip


def _admission(chosen: SecurityChoices) -> AdmissionSettings:
    found: dict[str, Any] = {}
    for plugin in (document(chosen.admission_file) or {}).get("plugins") or ():
        configured = plugin.get("configuration")
        if configured is None and plugin.get("path"):
            beside = Path(chosen.admission_file).parent / plugin["path"]
            configured = document(str(beside))
        found |= _plugin_fields(chosen, str(plugin.get("name")), configured or {})
    if "ImagePolicyWebhook" in chosen.enabled_plugins and "image_policy" not in found:
        raise CannotStart("ImagePolicyWebhook needs a configuration")
    return AdmissionSettings(
        chosen.enabled_plugins, chosen.disabled_plugins, **found,
        not_ready_seconds=chosen.not_ready_seconds,
        unreachable_seconds=chosen.unreachable_seconds,
    )  # fmt: skip


def _plugin_fields(chosen: SecurityChoices, plugin: str, configured: Obj) -> dict[str, Any]:
    """Fields of AdmissionSettings."""
    match plugin:
        case "PodSecurity":
            return {"pod_security": _pod_security(configured)}
        case "EventRateLimit":
            return {"event_limits": tuple(map(_event_limit, configured.get("limits") or ()))}
        case "ImagePolicyWebhook":
            return {"image_policy": _image_policy(chosen, configured.get("imagePolicy") or {})}
        case "PodNodeSelector":
            given = dict(configured.get("podNodeSelectorPluginConfig") or {})
            default = str(given.pop("clusterDefaultNodeSelector", ""))
            return {"node_selectors": NodeSelectorSettings(default, given)}
        case "PodTolerationRestriction":
            lists = (tuple(configured.get(item) or ()) for item in ("default", "whitelist"))
            return {"tolerations": TolerationSettings(*lists)}
        case "ResourceQuota":
            return {"limited_resources": tuple(configured.get("limitedResources") or ())}
    raise CannotStart(f"{chosen.admission_file}: {plugin} has nothing to configure")


def _image_policy(chosen: SecurityChoices, given: Obj) -> ImagePolicySettings:
    """Upstream's bounds: what is remembered at most 30 minutes, retries within 5 minutes."""
    if not given.get("kubeConfigFile"):
        raise CannotStart("ImagePolicyWebhook: kubeConfigFile is missing")
    target = _target(str(Path(chosen.admission_file).parent / given["kubeConfigFile"]))
    assert target is not None
    seconds = {key: float(given.get(key) or 0) for key in ("allowTTL", "denyTTL")}
    for key, value in seconds.items():
        if not 0 <= value <= 1800:
            raise CannotStart(f"ImagePolicyWebhook: {key} is between 1 and 1800 seconds")
    return ImagePolicySettings(
        target, seconds["allowTTL"] or 300.0, seconds["denyTTL"] or 30.0,
        float(given.get("retryBackoff") or 500) / 1000, given.get("defaultAllow") is True,
    )  # fmt: skip


def _pod_security(configured: Obj) -> PodSecuritySettings:
    # Only whoever configures it needs to read it.
    from sampan.apiserver.admission.pod_security.pod_security import standards

    exempt = configured.get("exemptions") or {}
    labels = {
        f"pod-security.kubernetes.io/{key}": value
        for key, value in (configured.get("defaults") or {}).items()
    }
    return PodSecuritySettings(
        standards(labels, PodSecuritySettings()),
        frozenset(exempt.get("usernames") or ()),
        frozenset(exempt.get("namespaces") or ()),
        frozenset(exempt.get("runtimeClasses") or ()),
    )


def _event_limit(limit: Obj) -> EventLimit:
    return EventLimit(
        limit["type"], float(limit["qps"]), int(limit["burst"]),
        int(limit.get("cacheSize") or 4096),
    )  # fmt: skip
