"""The proxy that the environment names, where the kubeconfig names none. Pure.

Job: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as Go's programs read them.
Invariant: this machine itself is never asked for through a proxy.
"""

from collections.abc import Mapping


def proxy_of(environment: Mapping[str, str], server: str) -> str:
    """The proxy's address for this server; nothing where there is none to use."""
    scheme, _, rest = server.partition("://")
    name = "HTTPS_PROXY" if scheme == "https" else "HTTP_PROXY"
    proxy = _value(environment, name)
    host = _host(rest.partition("/")[0])
    if not proxy or is_exempt(host, _value(environment, "NO_PROXY")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def is_exempt(host: str, exemptions: str) -> bool:
    if host == "localhost" or _is_loopback(host):
        return True
    return any(_covers(entry.strip().lower(), host) for entry in exemptions.split(","))


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def _host(authority: str) -> str:
    authority = authority.rpartition("@")[2].lower()
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host == "::1"


def _covers(entry: str, host: str) -> bool:
    """`*`, a name (and what is below it), `.name` (only what is below it), an address, a range."""
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        import ipaddress

        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    return host == entry or host.endswith(entry if entry.startswith(".") else f".{entry}")
