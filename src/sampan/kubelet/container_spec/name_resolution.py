"""How a pod is called and how it finds others: hostname, /etc/hosts, DNS settings. Pure.

Job: hostname and subdomain, the managed hosts file, dnsPolicy and dnsConfig.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, name_of, namespace_of, spec_of
from sampan.api.rules.pods import is_host_network
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.container_spec.environment import ConfigError

_HOSTNAME_LENGTH = 63
_FQDN_LENGTH = 64
# As upstream: what resolvers can take.
_NAMESERVERS = 3
_SEARCH_PATHS = 32
_SEARCH_CHARACTERS = 2048
_DOMAIN_LENGTH = 253


@dataclass(frozen=True, slots=True)
class Dns:
    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def hostname_and_domain(pod: Obj, cluster_domain: str) -> tuple[str, str]:
    spec = spec_of(pod)
    override = spec.get("hostnameOverride")
    if override:
        return override, ""
    hostname = spec.get("hostname") or name_of(pod)
    if len(hostname) > _HOSTNAME_LENGTH:
        hostname = hostname[:_HOSTNAME_LENGTH].rstrip("-.")
    subdomain = spec.get("subdomain")
    if not subdomain:
        return hostname, ""
    return hostname, f"{subdomain}.{namespace_of(pod)}.svc.{cluster_domain}"


def kernel_hostname(pod: Obj, cluster_domain: str) -> str:
    """What `hostname` prints in the pod."""
    hostname, domain = hostname_and_domain(pod, cluster_domain)
    if not domain or not spec_of(pod).get("setHostnameAsFQDN"):
        return hostname
    full = f"{hostname}.{domain}"
    if len(full) > _FQDN_LENGTH:
        raise ConfigError(
            "failed to construct FQDN from pod hostname and cluster domain, "
            f"FQDN {full} is too long ({_FQDN_LENGTH} characters is the max, "
            f"{len(full)} characters requested)"
        )
    return full


def hosts_file(pod: Obj, pod_ips: Sequence[str], cluster_domain: str, node_hosts: str) -> str:
    """The content of /etc/hosts; `node_hosts` is the node's own, for pods in its network."""
    if is_host_network(pod):
        return f"# Kubernetes-managed hosts file (host network).\n{node_hosts}" + _aliases(pod)
    hostname, domain = hostname_and_domain(pod, cluster_domain)
    names = f"{hostname}.{domain}\t{hostname}" if domain else hostname
    lines = [
        "# Kubernetes-managed hosts file.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "fe00::0\tip6-mcastprefix",
        "fe00::1\tip6-allnodes",
        "fe00::2\tip6-allrouters",
        *(f"{ip}\t{names}" for ip in pod_ips),
    ]
    return "\n".join(lines) + "\n" + _aliases(pod)


def dns(pod: Obj, node_dns: Dns, cluster_dns: Sequence[str], cluster_domain: str) -> Dns:
    """What goes into the pod's resolv.conf."""
    policy = spec_of(pod).get("dnsPolicy") or "ClusterFirst"
    in_cluster = policy == "ClusterFirstWithHostNet" or (
        policy == "ClusterFirst" and not is_host_network(pod)
    )
    if policy == "None":
        base = Dns()
    elif in_cluster and cluster_dns:
        namespace = namespace_of(pod)
        searches = (f"{namespace}.svc.{cluster_domain}", f"svc.{cluster_domain}", cluster_domain)
        own = searches if cluster_domain else ()
        base = Dns(tuple(cluster_dns), _unique((*own, *node_dns.searches)), ("ndots:5",))
    else:
        # As upstream: without a cluster DNS, the node's.
        base = node_dns
    return _within_limits(_with_config(base, spec_of(pod).get("dnsConfig") or {}))


def missing_cluster_dns(pod: Obj, cluster_dns: Sequence[str]) -> str:
    """What a pod is told that asks for the cluster's name server where there is none."""
    policy = spec_of(pod).get("dnsPolicy") or "ClusterFirst"
    if cluster_dns or not policy.startswith("ClusterFirst"):
        return ""
    if policy == "ClusterFirst" and is_host_network(pod):
        return ""
    return (
        "kubelet does not have ClusterDNS IP configured and cannot create Pod using "
        f'"{policy}" policy. Falling back to "Default" policy.'
    )


def parse_resolv_conf(text: str) -> Dns:
    """Name servers add up; of search and options lines the last one counts."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith(("#", ";")):
            continue
        if words[0] == "nameserver" and len(words) > 1:
            servers.append(words[1])
        elif words[0] == "search":
            searches = tuple(word.removesuffix(".") or "." for word in words[1:])
        elif words[0] == "options":
            options = tuple(words[1:])
    return Dns(tuple(servers), searches, options)


def _with_config(base: Dns, config: Obj) -> Dns:
    options = dict(_option(option) for option in base.options)
    for option in config.get("options") or ():
        options[option.get("name", "")] = option.get("value") or ""
    return Dns(
        _unique((*base.servers, *(config.get("nameservers") or ()))),
        _unique((*base.searches, *(config.get("searches") or ()))),
        tuple(f"{name}:{value}" if value else name for name, value in options.items()),
    )


def _within_limits(wanted: Dns) -> Dns:
    searches = [
        search for search in wanted.searches[:_SEARCH_PATHS] if len(search) <= _DOMAIN_LENGTH
    ]
    while len(" ".join(searches)) > _SEARCH_CHARACTERS:
        searches.pop()
    return Dns(wanted.servers[:_NAMESERVERS], tuple(searches), wanted.options)


def _option(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name, value


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _aliases(pod: Obj) -> str:
    aliases = spec_of(pod).get("hostAliases") or ()
    if not aliases:
        return ""
    lines = [f"{alias.get('ip')}\t" + "\t".join(alias.get("hostnames") or ()) for alias in aliases]
    return "\n# Entries added by HostAliases.\n" + "\n".join(lines) + "\n"
