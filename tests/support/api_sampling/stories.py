"""Stories of one object: created, read, changed in every way, listed, watched, deleted.

Job: a number → the steps of a story (tests/support/api_sampling/exchange.py sends them); the object
    is a good one of some kind with a few changes.
Invariant: the same number makes the same steps; each story's object has a name of its own, and what
    would send later requests out into the world, or refuse them, is only tried (dryRun).
"""

import json
import random
from typing import Any
from urllib.parse import quote

from sampan.api.objects import Obj, copy_of
from sampan.api.resources import Resource
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema
from sampan.api.served import served_resources
from tests.support.api_sampling.mutations import Mutations
from tests.support.api_sampling.seeds import seeds

NAMESPACE, CHARGED = "sample", "sample-charged"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
# What others of a namespace, or all, are judged by.
_CHARGING = frozenset({"ResourceQuota", "LimitRange"})
_ONLY_TRIED = frozenset({
    "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition",
    "ServiceCIDR", "PriorityClass", "FlowSchema", "PriorityLevelConfiguration", "Namespace",
    "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "IPAddress",
})  # fmt: skip
# Subresources that take the object itself.
_WRITTEN_BELOW = frozenset({"ephemeralcontainers", "resize", "approval", "status", "finalize"})
_ASKED = frozenset({"Binding", "ComponentStatus"})  # neither is created here
_QUERIES = ("", "", "", "dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore",
            "fieldManager=me", "dryRun=All&fieldValidation=Strict")  # fmt: skip
_LISTS = ("limit=1", "labelSelector=a%3Db", "fieldSelector=metadata.name%3D{name}",
          "fieldSelector=metadata.name!%3D{name}&limit=1", "resourceVersion=0&limit=1",
          "fieldSelector=status.phase%3DX", "labelSelector=!a&limit=1",
          "fieldSelector=metadata.name%3D{name}&resourceVersion=0")  # fmt: skip
# Of one object by its name: what others of the namespace are doing does not show.
_OPTIONS = ("", "limit=1", "limit=-1", "limit=x", "limit=", "resourceVersion=0",
            "resourceVersion=x",
            "resourceVersion=0&resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan",
            "resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=x",
            "resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1", "continue=x",
            "continue=x&resourceVersion=1", "labelSelector=", "labelSelector=a in (b,c)",
            "labelSelector=a notin (b)", "labelSelector=!a,b", "labelSelector=a=b=c",
            "labelSelector=,", "labelSelector=a>1", "labelSelector=a>x", "labelSelector=-a",
            "labelSelector=a in ()", "labelSelector=a==b", "labelSelector=x/y/z",
            "sendInitialEvents=true", "allowWatchBookmarks=true", "timeoutSeconds=x",
            "timeoutSeconds=-1", "pretty=true", "bogus=1", "watch=false", "watch=0",
            "resourceVersion=99999999", "includeObject=Object", "shardSelector=x")  # fmt: skip
_SELECTORS = ("metadata.namespace={namespace}", "metadata.namespace!=x", "status.phase=Running",
              "spec.nodeName=", "metadata.labels=a", "spec.unschedulable=true", "type=Opaque",
              "metadata.name={name},metadata.name!=b", "metadata.name", "metadata.name=={name}",
              "status.successful=1", "reason=x", "involvedObject.name=x", "spec.x!=",
              "metadata.name={name},", "metadata.name=a=b", "metadata.uid=x",
              "spec.signerName=x")  # fmt: skip
_WATCHES = ("", "resourceVersion=0", "resourceVersion=$made.resourceVersion$", "resourceVersion=x",
            "resourceVersion=$made.resourceVersion$&labelSelector=a=b", "allowWatchBookmarks=x",
            "resourceVersion=0&labelSelector=!a", "resourceVersionMatch=NotOlderThan",
            "resourceVersion=$made.resourceVersion$&limit=1", "continue=x", "sendInitialEvents=x",
            "sendInitialEvents=false", "sendInitialEvents=true", "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact&sendInitialEvents=true",
            "labelSelector=a in (b", "timeoutSeconds=x")  # fmt: skip
_DELETES = ("", "", "dryRun=All", "propagationPolicy=Foreground", "propagationPolicy=Orphan",
            "gracePeriodSeconds=0", "gracePeriodSeconds=-1", "orphanDependents=true")  # fmt: skip


class Stories:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rows = [
            row for row in served_resources()
            if (row.api_version, row.kind) in seeds() and row.kind not in _ASKED
        ]  # fmt: skip

    def story(self, number: int, only: str = "") -> list[Obj]:
        rng = random.Random(f"story {number}")
        rows = [row for row in self._rows if not only or row.kind == only]
        return _Story(self._schema, rng, rng.choice(rows), number).steps()


class _Story:
    def __init__(self, schema: Schema, rng: random.Random, row: Resource, number: int) -> None:
        self._rng, self._row, self._number = rng, row, number
        self._mutations = Mutations(schema, rng)
        self._type: Type | None = schema.type_of(row.api_version, row.kind)
        self._tried = row.kind in _ONLY_TRIED
        self._name = f"s{number}"
        namespace = CHARGED if row.kind in _CHARGING else NAMESPACE
        inner = f"/namespaces/{namespace}" if row.namespaced else ""
        self._many = f"{row.path}{inner}/{row.plural}"
        self._one = f"{self._many}/{self._name}"
        self._steps: list[Obj] = []

    def steps(self) -> list[Obj]:
        self._create()
        if self._row.verbs == ("create",) or self._tried:
            return self._steps
        offered = [self._put, self._merge, self._strategic, self._json, self._apply, self._list,
                   self._read, self._status, self._scale, self._delete, self._options, self._watch,
                   self._delete_all, self._other_subresource]  # fmt: skip
        weights = (4, 4, 4, 3, 4, 2, 1, 2, 1, 1, 3, 2, 1, 2)
        for act in self._rng.choices(offered, weights, k=self._rng.randint(1, 6)):
            act()
        self._step("DELETE", self._one)
        return self._steps

    def _object(self, most: int = 3) -> Obj:
        made: Obj = copy_of(self._rng.choice(seeds()[self._row.api_version, self._row.kind]))
        meta = made.setdefault("metadata", {})
        meta.pop("namespace", None)
        meta.pop("generateName", None)
        meta["name"] = self._name
        if self._row.namespaced:
            text = json.dumps(made)
            made = json.loads(text.replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"'))
        for _ in range(self._rng.choice((0, 1, 1, 2, most))):
            self._mutations.mutate(made, self._type)
        if self._rng.random() < 0.1:
            self._touch_metadata(made["metadata"] if isinstance(made.get("metadata"), dict) else {})
        return made

    def _touch_metadata(self, meta: Obj) -> None:
        rng = self._rng
        meta[rng.choice(("labels", "annotations"))] = rng.choice(
            (None, {}, {"a": "b"}, {"a": ""}, {"a": None}, {"_": "x"}, {"a": "x y"}, {"a": 1}, [])
        )
        if rng.random() < 0.3:
            key, value = rng.choice((
                ("finalizers", ["example.org/x"]), ("finalizers", []), ("finalizers", ["x"]),
                ("ownerReferences", []), ("ownerReferences", [{"name": "x"}]),
                ("creationTimestamp", None), ("uid", ""), ("resourceVersion", ""),
                ("generation", 5), ("selfLink", "x"), ("managedFields", []),
                ("managedFields", None), ("deletionTimestamp", "2026-01-01T00:00:00Z"),
                ("generateName", "x-"), ("namespace", "other"), ("bogus", 1),
            ))  # fmt: skip
            meta[key] = value

    def _step(self, method: str, path: str, body: Any = None, **more: Any) -> None:
        step: Obj = {"name": f"{len(self._steps)}-{method}", "method": method, "path": path, **more}
        if body is not None:
            step["body"] = body
            step.setdefault("content-type", "application/json")
        if not step.get("query"):
            step.pop("query", None)
        step["managed"] = True
        self._steps.append(step)

    def _query(self) -> str:
        return self._rng.choice(_QUERIES)

    def _create(self) -> None:
        query = self._query()
        if self._tried and "dryRun" not in query:
            query = f"{query}&dryRun=All".removeprefix("&")
        made = self._object()
        if self._rng.random() < 0.03 and not self._tried:
            made["metadata"].pop("name", None)
        self._step("POST", self._many, made, query=query)
        if not self._tried and self._row.verbs != ("create",):
            # Whatever came of it: from here on there is a good one.
            self._step("POST", self._many, self._good(), save="made")

    def _good(self) -> Obj:
        before, self._rng = self._rng, random.Random(self._number)
        made: Obj = copy_of(seeds()[self._row.api_version, self._row.kind][0])
        self._rng = before
        made.setdefault("metadata", {})["name"] = self._name
        made["metadata"].pop("namespace", None)
        made["metadata"].pop("generateName", None)
        text = json.dumps(made).replace('"namespace": "default"', f'"namespace": "{NAMESPACE}"')
        good: Obj = json.loads(text)
        return good

    def _put(self) -> None:
        made = self._good() if self._rng.random() < 0.5 else self._object()
        for _ in range(self._rng.choice((1, 1, 2))):
            self._mutations.mutate(made, self._type)
        if self._rng.random() < 0.7 and isinstance(made.get("metadata"), dict):
            made["metadata"]["resourceVersion"] = "$rv$"
        self._step("PUT", self._one, made, query=self._query())

    def _patch(self) -> Obj:
        """A part of an object, changed."""
        made = self._good()
        for _ in range(self._rng.choice((1, 2))):
            self._mutations.mutate(made, self._type)
        made.pop("apiVersion", None)
        made.pop("kind", None)
        if self._rng.random() < 0.7:
            made.pop("metadata", None)
        if self._rng.random() < 0.3 and isinstance(made.get("spec"), dict) and made["spec"]:
            key = self._rng.choice(sorted(made["spec"]))
            made["spec"] = {key: made["spec"][key]}
        return made

    def _merge(self) -> None:
        self._step(
            "PATCH", self._one, self._patch(), query=self._query(), **{"content-type": MERGE}
        )

    def _strategic(self) -> None:
        patch = self._patch()
        if self._rng.random() < 0.1:
            patch[self._rng.choice(("$patch", "$retainKeys"))] = self._rng.choice(
                ("replace", "delete", "merge", "x", ["a"])
            )
        step = {"content-type": STRATEGIC}
        self._step("PATCH", self._one, patch, query=self._query(), **step)

    def _json(self) -> None:
        rng, good = self._rng, self._good()
        paths = ["", "/metadata/labels", "/metadata/labels/a", "/spec", "/bogus"]
        for key, value in good.items():
            if isinstance(value, dict):
                paths += [f"/{key}/{inner}" for inner in value]
                paths += [
                    f"/{key}/{inner}/0" for inner, item in value.items() if isinstance(item, list)
                ]
        made = self._object(1)
        values: list[Any] = [None, "a", 5, {}, [], {"a": "b"}, made.get("spec"), made]
        operations = [
            {"op": rng.choice(("add", "replace", "remove", "test", "copy", "move")),
             "path": rng.choice(paths), "value": rng.choice(values), "from": rng.choice(paths)}
            for _ in range(rng.choice((1, 1, 2)))
        ]  # fmt: skip
        for operation in operations:
            if operation["op"] not in ("copy", "move"):
                del operation["from"]
        step = {"content-type": JSON_PATCH}
        self._step("PATCH", self._one, operations, query=self._query(), **step)

    def _apply(self) -> None:
        made = self._good()
        if self._rng.random() < 0.8:
            self._mutations.mutate(made, self._type)
        if self._rng.random() < 0.3 and isinstance(made.get("spec"), dict) and made["spec"]:
            made["spec"].pop(self._rng.choice(sorted(made["spec"])))
        manager = self._rng.choice(("one", "two"))
        query = f"fieldManager={manager}" + self._rng.choice(("", "&force=true", "&dryRun=All"))
        self._step("PATCH", self._one, made, query=query, **{"content-type": APPLY})

    def _list(self) -> None:
        query = self._rng.choice(_LISTS[2:3] * 4 + _LISTS[-1:]).format(name=self._name)
        accept = self._rng.choice(("application/json", TABLE, "application/yaml"))
        self._step("GET", self._many, query=query, accept=accept)

    def _options(self) -> None:
        """Of a list that has this object alone, or none."""
        rng = self._rng
        accept = rng.choice(("application/json", "application/json", TABLE, PARTIAL, "text/html",
                             "application/yaml", "application/json;as=Table;g=meta.k8s.io;v=v2",
                             "application/json;as=Nope;g=meta.k8s.io;v=v1"))  # fmt: skip
        query = f"fieldSelector={quote(f'metadata.name={self._name}')}"
        if rng.random() < 0.4:
            selector = rng.choice(_SELECTORS).format(name=self._name, namespace=NAMESPACE)
            query = f"fieldSelector={quote(f'metadata.name={self._name},{selector}')}"
        more = quote(rng.choice(_OPTIONS), safe="=&$")
        self._step("GET", self._many, query=f"{query}&{more}", accept=accept)

    def _watch(self) -> None:
        """For a second: of this object what was and what comes at once."""
        rng, chosen = self._rng, quote(self._rng.choice(_WATCHES), safe="=&$")
        name = quote(f"metadata.name={self._name}")
        path = self._many
        query = f"watch=1&timeoutSeconds=1&fieldSelector={name}&{chosen}"
        if rng.random() < 0.2:
            row, watched = self._row, f"{self._row.path}/watch/"
            path = self._one.replace(f"{row.path}/", watched, 1)
            query = f"timeoutSeconds=1&{chosen}"
        accept = rng.choice(("application/json", "application/json", TABLE, PARTIAL, "text/html"))
        self._step("GET", path, query=query, accept=accept)

    def _delete_all(self) -> None:
        """Of all the one that has its name."""
        selector = f"fieldSelector={quote(f'metadata.name={self._name}')}"
        more = self._rng.choice((*_DELETES, "dryRun=", "limit=1", "limit=x",
                                 "resourceVersion=0", "labelSelector=a=", "continue=x",
                                 "resourceVersion=x"))  # fmt: skip
        body: Any = self._rng.choice((
            None, None, {"apiVersion": "v1", "kind": "DeleteOptions"},
            {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"},
            {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "x"}},
            {"kind": "DeleteOptions", "gracePeriodSeconds": "1"}, {"kind": "Pod"}, [], {},
        ))  # fmt: skip
        self._step("DELETE", self._many, body, query=f"{selector}&{more}")

    def _other_subresource(self) -> None:
        names = [item.name for item in self._row.subresources if item.name in _WRITTEN_BELOW]
        if not names:
            self._watch()
            return
        name = self._rng.choice(names)
        made = self._good()
        self._mutations.mutate(made, self._type)
        how = self._rng.choice((MERGE, STRATEGIC, JSON_PATCH, APPLY, "put", "get"))
        path, query = f"{self._one}/{name}", self._query()
        if how == "get":
            self._step("GET", path)
        elif how == "put":
            self._step("PUT", path, made, query=query)
        elif how == JSON_PATCH:
            where = self._rng.choice(("/spec", "/metadata/labels"))
            operations: list[Obj] = [{"op": "replace", "path": where,
                           "value": self._rng.choice((made.get("spec"), {}, None))}]  # fmt: skip
            self._step("PATCH", path, operations, query=query, **{"content-type": how})
        else:
            self._step("PATCH", path, made, query=query, **{"content-type": how})

    def _read(self) -> None:
        accept = self._rng.choice(("application/json", TABLE, PARTIAL, "application/yaml"))
        self._step("GET", self._one, accept=accept)

    def _status(self) -> None:
        if self._row.subresource("status") is None:
            return
        status_type = None if self._type is None else self._mutations.field(self._type, "status")
        status = self._mutations.value(status_type, 1)
        how = self._rng.choice((MERGE, STRATEGIC, "put"))
        path = f"{self._one}/status"
        if how == "put":
            self._step("PUT", path, {**self._good(), "status": status})
        else:
            self._step("PATCH", path, {"status": status}, **{"content-type": how})

    def _scale(self) -> None:
        if self._row.subresource("scale") is None:
            return
        path, replicas = f"{self._one}/scale", self._rng.choice((0, 1, 3, -1, "5", None, 1.5))
        if self._rng.random() < 0.5:
            self._step("PATCH", path, {"spec": {"replicas": replicas}}, **{"content-type": MERGE})
        else:
            head = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
            meta = {"name": self._name}
            self._step("PUT", path, {**head, "metadata": meta, "spec": {"replicas": replicas}})

    def _delete(self) -> None:
        self._step("DELETE", self._one, query=self._rng.choice(_DELETES))
