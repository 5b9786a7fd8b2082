"""Windows options of pods and containers.

Job: windowsOptions → causes: credentials, the user's name, and that a pod's processes are all the
    host's or none is.
Invariant: a container that says nothing of its process has what its pod says.
"""

from collections.abc import Iterator

from sampan.api.errors import FieldError, invalid_value
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import validate_with
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_MOST_CREDENTIAL_KIB, _MOST_DOMAIN, _MOST_USER = 64, 256, 104
_CONTROL = lazy_pattern(r"[\x00-\x1f\x7f]")
_NET_BIOS = lazy_pattern(r'[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}')
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = lazy_pattern(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_USER_BAD = lazy_pattern(r'["/\\:;|=,\+\*\?<>@\[\]]')
_USER_NOTHING = lazy_pattern(r"[\. ]+")


def validate_windows_options(options: Obj | None, path: str, errors: Errors) -> None:
    if options is None:
        return
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        validate_with(names.dns_subdomain, name, f"{path}.gmsaCredentialSpecName", errors)
    credential, here = options.get("gmsaCredentialSpec"), f"{path}.gmsaCredentialSpec"
    if credential == "":
        why = "gmsaCredentialSpec cannot be an empty string"
        errors.append(invalid_value(here, credential, why))
    elif credential is not None and len(credential.encode()) > _MOST_CREDENTIAL_KIB * 1024:
        why = f"gmsaCredentialSpec size must be under {_MOST_CREDENTIAL_KIB} KiB"
        errors.append(invalid_value(here, credential, why))
    user = options.get("runAsUserName")
    if user is not None:
        for why in _wrong_with(user):
            errors.append(invalid_value(f"{path}.runAsUserName", user, f"runAsUserName{why}"))


def _wrong_with(name: str) -> Iterator[str]:
    """`USER`, or `DOMAIN\\USER`."""
    if not name:
        yield " cannot be an empty string"
    elif _CONTROL.search(name):
        yield " cannot contain control characters"
    elif name.count("\\") > 1:
        yield " cannot contain more than one backslash"
    else:
        domain, backslash, user = name.rpartition("\\")
        if len(domain.encode()) >= _MOST_DOMAIN:
            yield f"'s Domain length must be under {_MOST_DOMAIN} characters"
        if backslash and not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
            yield "'s Domain doesn't match the NetBios nor the DNS format"
        yield from _wrong_with_user(user)


def _wrong_with_user(user: str) -> Iterator[str]:
    if not user:
        yield "'s User cannot be empty"
    elif len(user.encode()) > _MOST_USER:
        yield f"'s User length must not be longer than {_MOST_USER} characters"
    if _USER_NOTHING.fullmatch(user):
        yield "'s User cannot contain only periods or spaces"
    if _USER_BAD.search(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def validate_host_process(spec: Obj, path: str, errors: Errors) -> None:
    """Of all containers of a pod, or of none; and then with the host's network."""
    pods = _is_host_process(spec)
    of_host = []
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            own = _is_host_process(container)
            if own is not None and pods is not None and own != pods:
                here = f"{path}.{kind}[{index}].securityContext.windowsOptions.hostProcess"
                said = "true" if pods else "false"
                why = f"pod hostProcess value must be identical if both are specified, was {said}"
                errors.append(invalid_value(here, own, why))
            of_host.append(bool(pods if own is None else own))
    if not any(of_host):
        return
    if not all(of_host):
        why = (
            "If pod contains any hostProcess containers then all containers must be HostProcess"
            " containers"
        )
        errors.append(invalid_value(path, "", why))
    if not spec.get("hostNetwork"):
        why = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid_value(f"{path}.hostNetwork", False, why))


def _is_host_process(holder: Obj) -> bool | None:
    options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    said: bool | None = options.get("hostProcess")
    return said
