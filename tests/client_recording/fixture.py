"""The objects that composed commands find: loaded once, looked at after each, and made good again.

Job: fixture.jsonl onto a server; what is there now as plain data; back to how it was.
Invariant: after `restore` every object is as the file has it, and there are no others.
"""

import json
import re
import time
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.client import kubeconfig
from sampan.client.blocking import BlockingClient

OBJECTS = [json.loads(line) for line in Path(__file__).with_name("fixture.jsonl").open()]
NAMESPACES = ("app", "other")
# What nobody of the fixture owns, and controllers of every server make by themselves.
MADE = {"kube-root-ca.crt", "default"}
PLURALS = {
    "Namespace": "namespaces", "Node": "nodes", "Deployment": "deployments",
    "ReplicaSet": "replicasets", "Pod": "pods", "StatefulSet": "statefulsets",
    "ControllerRevision": "controllerrevisions", "DaemonSet": "daemonsets", "Job": "jobs",
    "CronJob": "cronjobs", "ReplicationController": "replicationcontrollers",
    "Service": "services", "EndpointSlice": "endpointslices", "Ingress": "ingresses",
    "NetworkPolicy": "networkpolicies", "ConfigMap": "configmaps", "Secret": "secrets",
    "ServiceAccount": "serviceaccounts", "Role": "roles", "RoleBinding": "rolebindings",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolumeClaim": "persistentvolumeclaims", "PersistentVolume": "persistentvolumes",
    "StorageClass": "storageclasses", "PriorityClass": "priorityclasses",
    "ResourceQuota": "resourcequotas", "LimitRange": "limitranges",
    "CustomResourceDefinition": "customresourcedefinitions", "Widget": "widgets",
    "Event": "events", "Lease": "leases",
}  # fmt: skip
# Made by commands, not by the file.
OTHERS = (
    ("rbac.authorization.k8s.io/v1", "clusterroles"),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    ("certificates.k8s.io/v1", "certificatesigningrequests"),
)
WITHOUT_STATUS = {
    "ControllerRevision", "EndpointSlice", "NetworkPolicy", "ConfigMap", "Secret",
    "ServiceAccount", "Role", "RoleBinding", "StorageClass", "PriorityClass", "LimitRange",
    "Event", "Lease",
}  # fmt: skip
SECONDS = 30.0


def collection(api_version, plural, namespace=""):
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def path_of(obj):
    meta = obj["metadata"]
    where = collection(obj["apiVersion"], PLURALS[obj["kind"]], meta.get("namespace", ""))
    return where, f"{where}/{meta['name']}"


class Fixture:
    def __init__(self, path):
        connection = kubeconfig.load(str(path), {}, "/").connection()
        self.api = BlockingClient(connection, timeout_seconds=60.0)
        self._uids = {}
        self._built_in = {}
        self._names = {}  # of those whose name is random: what it is

    def load(self):
        for plural in ("clusterroles", "clusterrolebindings"):
            listed = self._items("rbac.authorization.k8s.io/v1", plural)
            self._built_in[plural] = {one["metadata"]["name"] for one in listed}
        for obj in OBJECTS:
            self._make(obj)
        self._wait_for_made()
        self.start = self.state()

    def state(self):
        """{path: object}, without what differs by nature."""
        found = {}
        types = dict.fromkeys((one["apiVersion"], PLURALS[one["kind"]]) for one in OBJECTS)
        for api_version, plural in (*types, *OTHERS):
            for item in self._items(api_version, plural):
                if self._is_ours(plural, item):
                    meta = item["metadata"]
                    name = _RANDOM.sub("RANDOM", meta["name"])
                    found[plural, meta.get("namespace", ""), name] = lasting(item)
                    self._names[plural, meta.get("namespace", ""), name] = meta["name"]
        return found

    def restore(self, now=None):
        """`now`: the state, where it was looked at already."""
        now = self.state() if now is None else now
        files = {}
        for obj in OBJECTS:
            meta = obj["metadata"]
            files[PLURALS[obj["kind"]], meta.get("namespace", ""), meta["name"]] = obj
        wrong = {key for key in {*now, *self.start} if now.get(key) != self.start.get(key)}
        if not wrong:
            return
        for key in wrong:
            self._remove(key, files.get(key))
        for key, obj in files.items():
            if key in wrong or self._owner_changed(obj):
                if key not in wrong:
                    self._remove(key, obj)
                self._make(obj)
        self._wait_for_made()
        self._until(lambda: self.state() == self.start)

    def _items(self, api_version, plural):
        try:
            listed = self.api.json("GET", collection(api_version, plural))
        except ApiError as error:
            if error.code == 404:
                return []
            raise
        for item in listed["items"]:
            item["apiVersion"], item["kind"] = api_version, listed["kind"].removesuffix("List")
        return listed["items"]

    def _is_ours(self, plural, item):
        meta = item["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if namespace:
            return namespace in (*NAMESPACES, "default") and not (
                name in MADE or (namespace, name) == ("default", "kubernetes")
                or (plural == "endpointslices" and namespace == "default")
            )  # fmt: skip
        if plural in self._built_in:
            return name not in self._built_in[plural]
        if plural == "namespaces":
            return name != "default" and not name.startswith("kube-")
        return not name.startswith("system-")

    def _owner_changed(self, obj):
        return any(
            self._uids.get((obj["metadata"]["namespace"], owner["uid"])) != self._live_uid(obj)
            for owner in obj["metadata"].get("ownerReferences") or []
        )

    def _live_uid(self, obj):
        live = self.api.json("GET", path_of(obj)[1])
        return live["metadata"]["ownerReferences"][0]["uid"]

    def _make(self, obj):
        where, path = path_of(obj)
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        sent = json.loads(json.dumps(obj))
        for owner in sent["metadata"].get("ownerReferences") or []:
            owner["uid"] = self._uids[namespace, owner["uid"]]
        made = self._created(where, sent)
        self._uids[namespace, f"$uid:{obj['kind']}/{meta['name']}"] = made["metadata"]["uid"]
        if obj.get("status") and obj["kind"] not in WITHOUT_STATUS:
            self.api.json("PUT", f"{path}/status", body={**made, "status": sent["status"]})
        if obj["kind"] == "CustomResourceDefinition":
            self._until(lambda: self._answers(collection("example.com/v1", "widgets")))

    def _created(self, where, sent):
        until = time.monotonic() + SECONDS
        while True:
            try:
                return self.api.json("POST", where, body=sent)
            except ApiError as error:  # of the last one something is still going
                if error.code not in (403, 404, 409) or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _remove(self, key, obj):
        plural, namespace, name = key
        name = self._names.get(key, name)
        api_version = obj["apiVersion"] if obj else self._version_of(plural)
        path = f"{collection(api_version, plural, namespace)}/{name}"
        options = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}
        try:
            self.api.json("DELETE", path, options)
            live = self.api.json("GET", path)
            if live["metadata"].get("finalizers"):
                body = {"metadata": {"finalizers": None}}
                kind = "application/merge-patch+json"
                self.api.json("PATCH", path, body=body, content_type=kind)
        except ApiError as error:
            if error.code != 404:
                raise
        if plural == "namespaces":
            self._until(lambda: not self._answers(path))

    def _version_of(self, plural):
        known = {PLURALS[one["kind"]]: one["apiVersion"] for one in OBJECTS}
        return {**known, **{name: version for version, name in OTHERS}}[plural]

    def _answers(self, path):
        try:
            self.api.json("GET", path)
        except ApiError:
            return False
        return True

    def _wait_for_made(self):
        for namespace in (*NAMESPACES, "default"):
            for plural, name in (
                ("serviceaccounts", "default"),
                ("configmaps", "kube-root-ca.crt"),
            ):
                path = f"{collection('v1', plural, namespace)}/{name}"
                self._until(lambda path=path: self._answers(path))

    def _until(self, is_so):
        until = time.monotonic() + SECONDS
        while not is_so():
            assert time.monotonic() < until
            time.sleep(0.02)


_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=kube-api-access-)[a-z0-9]{5}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
    r"|\b10\.\d+\.\d+\.\d+|(?<=\"nodePort\": )\d{5}|(?<=debugger-)[a-z0-9]{5}\b"
    r"|(?<=node-debugger-n\d-)[a-z0-9]{5}\b"
)


def lasting(item):
    """As text, without identities and times; who manages which fields stays."""
    meta = {
        key: value
        for key, value in item["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
    }
    if item["metadata"].get("deletionTimestamp"):
        meta["deletionTimestamp"] = "TIME"
    meta["managedFields"] = sorted(
        (
            {key: value for key, value in entry.items() if key != "time"}
            for entry in meta.get("managedFields") or []
        ),
        key=json.dumps,
    )
    return _RANDOM.sub("RANDOM", json.dumps({**item, "metadata": meta}, sort_keys=True))
