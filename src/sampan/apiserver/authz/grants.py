"""Policy rules of one subject, compiled for look-up.

Job: PolicyRules in, one dictionary look-up per question out. Pure.
Invariant: answers what walking the rules one by one would answer (tests hold it against that).
"""

from collections.abc import Iterable

from sampan.api.objects import Obj

ALL = "*"


class Grants:
    """The union of all rules that were added; each remembers through which binding it came."""

    def __init__(self) -> None:
        # (group, resource, verb) → why, for any name
        self._any: dict[tuple[str, str, str], str] = {}
        # … → name → why
        self._named: dict[tuple[str, str, str], dict[str, str]] = {}
        self._paths: dict[tuple[str, str], str] = {}  # (verb, path) → why
        self._prefixes: dict[tuple[str, str], str] = {}  # (verb, what a path starts with) → why
        self.rules: list[Obj] = []

    def add(self, rules: Iterable[Obj], why: str) -> None:
        for rule in rules:
            self.rules.append(rule)
            names = rule.get("resourceNames") or ()
            for verb in rule.get("verbs") or ():
                for group in rule.get("apiGroups") or ():
                    for resource in rule.get("resources") or ():
                        self._grant((group, resource, verb), names, why)
                for path in rule.get("nonResourceURLs") or ():
                    self._paths.setdefault((verb, path), why)
                    if path.endswith(ALL):
                        self._prefixes.setdefault((verb, path.rstrip(ALL)), why)

    def resource(
        self, verb: str, group: str, resource: str, subresource: str, name: str
    ) -> str | None:
        """Why it is allowed; None: it is not."""
        if not self._any and not self._named:
            return None
        full = f"{resource}/{subresource}" if subresource else resource
        every = (full, ALL, f"*/{subresource}") if subresource else (full, ALL)
        for item in every:
            for of in (group, ALL):
                for by in (verb, ALL):
                    key = (of, item, by)
                    why = self._any.get(key)
                    if why is None and name:
                        why = self._named.get(key, {}).get(name)
                    if why is not None:
                        return why
        return None

    def path(self, verb: str, path: str) -> str | None:
        for by in (verb, ALL):
            why = self._paths.get((by, path))
            if why is not None:
                return why
        for (by, start), why in self._prefixes.items():
            if by in (verb, ALL) and path.startswith(start):
                return why
        return None

    def covers(self, rule: Obj) -> bool:
        """Whoever holds these grants may hand this rule on: every part of it is held."""
        names = rule.get("resourceNames") or ("",)
        for verb in rule.get("verbs") or ():
            for path in rule.get("nonResourceURLs") or ():
                if self.path(verb, path) is None:
                    return False
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    main, _, sub = resource.partition("/")
                    if any(self.resource(verb, group, main, sub, name) is None for name in names):
                        return False
        return True

    def _grant(self, key: tuple[str, str, str], names: Iterable[str], why: str) -> None:
        if not names:
            self._any.setdefault(key, why)
            return
        named = self._named.setdefault(key, {})
        for name in names:
            named.setdefault(name, why)
