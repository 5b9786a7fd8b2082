"""Which credential plugins may run: the word of a user's kuberc.

Job: check the policy itself, and a plugin against it.
Invariant: what an allowlist does not name is not run; of what it names, that very file is.
"""

import os
from collections.abc import Mapping

from sampan.api.objects import Obj
from sampan.cli.errors import CliError


class NotAllowed(CliError):
    """The policy cannot be, or does not let a plugin run."""


def validate(preference: Obj) -> None:
    """What a kuberc says of credential plugins. Raises NotAllowed."""
    policy = preference.get("credentialPluginPolicy") or ""
    allowlist = preference.get("credentialPluginAllowlist")
    if policy in ("", "AllowAll", "DenyAll"):
        if allowlist is not None:
            raise NotAllowed(
                f'misconfigured credential plugin allowlist: plugin policy is "{policy}" but '
                "allowlist is non-nil"
            )
        return
    if policy != "Allowlist":
        raise NotAllowed(f'unknown plugin policy: "{policy}"')
    if allowlist is None:
        raise NotAllowed(
            f'credential plugin policy set to "{policy}", but allowlist is unspecified'
        )
    if not allowlist:
        raise NotAllowed(
            f'credential plugin policy set to "{policy}", but allowlist is empty; use "DenyAll" '
            "policy instead"
        )
    for at, entry in enumerate(allowlist, 1):
        name = entry.get("name") or ""
        if not name:
            why = f"empty allowlist entry #{at}"
            raise NotAllowed(f"misconfigured credential plugin allowlist: {why}")
        if os.path.normpath(name) != name:
            raise NotAllowed(f'non-normalized file path: "{name}" vs "{os.path.normpath(name)}"')


def allowed(plugin: Obj, policy: Obj, environment: Mapping[str, str]) -> Obj:
    """The plugin, with the very file that was allowed as its command. Raises NotAllowed."""
    kind = policy.get("credentialPluginPolicy") or "AllowAll"
    command = os.path.normpath(str(plugin.get("command") or ""))
    if kind == "DenyAll":
        raise NotAllowed(f'plugin "{command}" not allowed: policy set to "{kind}"')
    if kind == "AllowAll":
        return plugin
    names = {entry["name"] for entry in policy.get("credentialPluginAllowlist") or []}
    path = environment.get("PATH", os.defpath)
    resolved = _looked_up(command, path)
    if command in names or resolved in names:
        return {**plugin, "command": resolved or command}
    if resolved is None:
        raise NotAllowed(
            f'plugin path "{command}" cannot be resolved for credential plugin allowlist check: '
            f'exec: "{command}": executable file not found in $PATH'
        )
    # As kubectl: an entry is looked for on PATH only where its last name is the plugin's.
    for name in names:
        is_hinted = os.path.basename(name) == os.path.basename(resolved)
        if is_hinted and _looked_up(name, path) == resolved:
            return {**plugin, "command": resolved}
    raise NotAllowed(
        f'plugin path "{resolved}" is not permitted by the credential plugin allowlist'
    )


def _looked_up(name: str, path: str) -> str | None:
    """The program of that name: on PATH, or where the name says."""
    folders = [""] if "/" in name else path.split(os.pathsep)
    for folder in folders:
        candidate = os.path.join(folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None
