"""Rules of roles as rows: one per resource, as describe and `auth can-i --list` show them. Pure.

Job: break rules down to single resources, join those that differ only in verbs, sort.
"""

from sampan.api.objects import Obj

Row = tuple[str, str, str, str]
Key = tuple[str, str, str, str]  # group, resource, name, URL


def breakdown(rules: list[Obj]) -> list[Row]:
    joined: dict[Key, list[str]] = {}
    paths: list[tuple[Key, list[str]]] = []  # as upstream: never joined
    for rule in rules:
        verbs = rule.get("verbs") or []
        names = rule.get("resourceNames") or [""]
        for url in rule.get("nonResourceURLs") or []:
            paths.append((("", "", "[]", f"[{url}]"), verbs))
        for group in rule.get("apiGroups") or []:
            for resource in rule.get("resources") or []:
                for name in names:
                    _add(joined, (group, resource, f"[{name}]", "[]"), verbs)
    return [
        (_qualify(resource, group), url, name, f"[{' '.join(verbs)}]")
        for (group, resource, name, url), verbs in sorted([*joined.items(), *paths], key=_order)
    ]


def _order(entry: tuple[Key, list[str]]) -> str:
    """As upstream: by the text of the whole rule, verbs first; brackets are a part of it."""
    (group, resource, name, url), verbs = entry
    return f"[{' '.join(verbs)}],[{group}],[{resource}],{name},{url}"


def _qualify(resource: str, group: str) -> str:
    base, slash, subresource = resource.partition("/")
    name = f"{base}.{group}" if group else base
    return f"{name}/{subresource}" if slash else name


def _add(joined: dict[Key, list[str]], key: Key, verbs: list[str]) -> None:
    own = joined.setdefault(key, [])
    own += [verb for verb in verbs if verb not in own]
