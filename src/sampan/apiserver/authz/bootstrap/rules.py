"""The words that the bootstrap roles are written in.

Job: one line of text per rule → a PolicyRule as the API shows it. Pure.
"""

from sampan.api.objects import Obj

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = f"{READ} {WRITE}"
READ_UPDATE = f"{READ} patch update"
CORE = "-"  # the group without a name, where groups are listed

Rules = tuple[Obj, ...]


def rule(verbs: str, groups: str, resources: str, names: str = "") -> Obj:
    """Each argument lists its words with blanks between; sorted, as upstream's are."""
    made: Obj = {
        "apiGroups": sorted("" if part == CORE else part for part in groups.split()),
        "resources": sorted(resources.split()),
        "verbs": sorted(verbs.split()),
    }
    if names:
        made["resourceNames"] = sorted(names.split())
    return made


def paths(urls: str, verbs: str = "get") -> Obj:
    return {"nonResourceURLs": sorted(urls.split()), "verbs": verbs.split()}


def events() -> Obj:
    return rule("create patch update", f"{CORE} events.k8s.io", "events")
