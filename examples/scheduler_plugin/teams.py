"""A plugin for sampan's scheduler: a node belongs to the team whose pod came to it first.

It remembers that for as long as the scheduler runs.
"""

from sampan.scheduler.plugin import Plugin

TEAM = "example.com/team"


class OneTeam(Plugin):
    def __init__(self, args, handle):
        super().__init__(args, handle)
        self._teams = {}  # by node: the team that has it, and its pods

    def filter(self, pod, node):
        team, _ = self._teams.get(node.name, ("", set()))
        own = (pod["metadata"].get("labels") or {}).get(TEAM, "")
        return None if not own or team in ("", own) else "node(s) had another team's pods"

    def reserve(self, pod, node):
        own = (pod["metadata"].get("labels") or {}).get(TEAM, "")
        if own:
            team, pods = self._teams.setdefault(node, (own, set()))
            pods.add(pod["metadata"]["uid"])
        return None

    def unreserve(self, pod, node):
        team, pods = self._teams.get(node, ("", set()))
        pods.discard(pod["metadata"]["uid"])
        if team and not pods:
            del self._teams[node]
