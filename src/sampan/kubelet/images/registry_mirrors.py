"""Registries that images come from in place of others, as containerd reads them.

Job: REGISTRY → URLs become hosts.toml files in the directory where containerd looks.
Invariant: a file that a person wrote is neither changed nor removed: ours carry a mark.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

MARK = "# written by sampan (--registry-mirror); it is removed when the flag is\n"
FILE = "hosts.toml"
# Images of docker.io are served under another name.
_SERVERS = {"docker.io": "https://registry-1.docker.io"}


class MirrorRefused(Exception):
    """A file that a person wrote is in the way."""


def write_mirrors(folder: Path, mirrors: Mapping[str, Sequence[str]]) -> None:
    """What was written for earlier mirrors goes. Raises MirrorRefused."""
    for path in sorted(folder.glob(f"*/{FILE}")):
        if path.parent.name not in mirrors and path.read_text().startswith(MARK):
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    for registry, urls in mirrors.items():
        path = folder / registry / FILE
        if path.exists() and not path.read_text().startswith(MARK):
            raise MirrorRefused(
                f"{path} was written by somebody else: leave --registry-mirror out for {registry}, "
                "or remove the file"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hosts_toml(registry, urls))


def hosts_toml(registry: str, urls: Sequence[str]) -> str:
    """The mirrors in their order; the registry itself comes last, by the URL that names it, if one
    does: a registry without TLS is not asked by it."""
    own = (url for url in urls if urlsplit(url).netloc == registry)
    server = next(own, _SERVERS.get(registry, f"https://{registry}"))
    lines = [f"server = {json.dumps(server)}"]
    for url in urls:
        lines += ["", f"[host.{json.dumps(url)}]", '  capabilities = ["pull", "resolve"]']
    return MARK + "\n".join(lines) + "\n"
