"""Pods of a node that is drained: which of them go, and how they go.

Job: kubectl's filters over a node's pods; then evict or delete them, all at once, and wait until
they are gone.
Invariant: a pod that a disruption budget keeps never keeps the others.
"""

import contextlib
import time
from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, controller_of, seconds_of
from sampan.api.rules import pods
from sampan.cli.common_flags import DryRun
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Values
from sampan.cli.session import Session
from sampan.core.durations import NANO, duration_text
from sampan.core.fast_dataclass import dataclass

RETRY_SECONDS = 5.0
POLL_SECONDS = 1.0
DAEMON_SET_FATAL = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
DAEMON_SET_WARNING = "ignoring DaemonSet-managed Pods"
LOCAL_FATAL = "Pods with local storage (use --delete-emptydir-data to override)"
LOCAL_WARNING = "deleting Pods with local storage"
UNMANAGED_FATAL = "cannot delete Pods that declare no controller (use --force to override)"
UNMANAGED_WARNING = "deleting Pods that declare no controller"


@dataclass(frozen=True, slots=True)
class Verdict:
    goes: bool
    warning: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pods that go, and what is to be said of the others."""

    pods: list[Obj]
    warnings: str
    errors: list[Exception]


def choose(session: Session, values: Values, node: str) -> Chosen:
    query = {"fieldSelector": f"spec.nodeName={node}"}
    if values["pod-selector"]:
        query["labelSelector"] = values.text("pod-selector")
    found = session.api.json("GET", "/api/v1/pods", query).get("items") or []
    chosen: list[Obj] = []
    errors: dict[str, list[str]] = {}
    warnings: dict[str, list[str]] = {}
    for pod in found:
        verdict = _verdict(session, values, pod)
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if verdict.goes:
            chosen.append(pod)
        if verdict.error:
            errors.setdefault(verdict.error, []).append(name)
        if verdict.warning:
            warnings.setdefault(verdict.warning, []).append(name)
    return Chosen(
        chosen,
        "; ".join(f"{why}: {', '.join(names)}" for why, names in sorted(warnings.items())),
        [CliError(f"cannot delete {why}: {', '.join(names)}") for why, names in errors.items()],
    )


def _verdict(session: Session, values: Values, pod: Obj) -> Verdict:
    """The last word is that of the first filter that keeps the pod, or of the last of them all."""
    verdict = Verdict(True)
    for judge in (_long_gone, _daemon_set, _mirror, _local_storage, _unreplicated):
        verdict = judge(session, values, pod)
        if not verdict.goes:
            break
    return verdict


def _long_gone(session: Session, values: Values, pod: Obj) -> Verdict:
    return Verdict(not is_long_gone(session, values, pod))


def is_long_gone(session: Session, values: Values, pod: Obj) -> bool:
    """Deleted so long ago that nobody waits for it any more."""
    seconds = values["skip-wait-for-delete-timeout"]
    moment = pod["metadata"].get("deletionTimestamp")
    return bool(seconds > 0 and moment and session.clock.now() - seconds_of(moment) >= seconds + 1)


def _daemon_set(session: Session, values: Values, pod: Obj) -> Verdict:
    owner = controller_of(pod) or {}
    is_its = (owner.get("kind"), owner.get("apiVersion")) == ("DaemonSet", "apps/v1")
    if not is_its or pods.is_terminal(pod):
        return Verdict(True)
    namespace = pod["metadata"]["namespace"]
    try:
        session.api.json("GET", f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{owner['name']}")
    except ApiError as error:
        if error.code == 404 and values["force"]:
            return Verdict(True, warning=error.message)
        return Verdict(False, error=error.message)
    if not values["ignore-daemonsets"]:
        return Verdict(False, error=DAEMON_SET_FATAL)
    return Verdict(False, warning=DAEMON_SET_WARNING)


def _mirror(session: Session, values: Values, pod: Obj) -> Verdict:
    return Verdict(not pods.is_mirror(pod))


def _local_storage(session: Session, values: Values, pod: Obj) -> Verdict:
    has_local = any("emptyDir" in volume for volume in pod["spec"].get("volumes") or [])
    if not has_local or pods.is_terminal(pod):
        return Verdict(True)
    if not values["delete-emptydir-data"]:
        return Verdict(False, error=LOCAL_FATAL)
    return Verdict(True, warning=LOCAL_WARNING)


def _unreplicated(session: Session, values: Values, pod: Obj) -> Verdict:
    if pods.is_terminal(pod) or controller_of(pod):
        return Verdict(True)
    if values["force"]:
        return Verdict(True, warning=UNMANAGED_WARNING)
    return Verdict(False, error=UNMANAGED_FATAL)


class Removal:
    """Of one node's pods."""

    def __init__(self, session: Session, values: Values, strategy: DryRun) -> None:
        self._session, self._values, self._strategy = session, values, strategy
        self._seconds = values["timeout"] or float("inf")
        self._deadline = session.clock.monotonic() + self._seconds
        self._options: Obj = {}
        if values["grace-period"] >= 0:
            self._options["gracePeriodSeconds"] = values["grace-period"]
        if strategy == "server":
            self._options["dryRun"] = ["All"]

    def run(self, chosen: list[Obj]) -> None:
        """Raises what happened to each pod that could not be removed."""
        if self._values["disable-eviction"]:
            self._delete(chosen)
        else:
            self._evict(chosen)

    def _evict(self, chosen: list[Obj]) -> None:
        failures: list[Exception] = []
        waiting: list[tuple[float, Callable[[], float | None]]] = [
            (0.0, self._steps(pod)) for pod in chosen
        ]
        while waiting:
            waiting.sort(key=lambda one: one[0])
            due, step = waiting.pop(0)
            time.sleep(max(due - self._session.clock.monotonic(), 0.0))
            try:
                pause = step()
            except CliError as error:
                failures.append(error)
                continue
            if pause is not None:
                waiting.append((self._session.clock.monotonic() + pause, step))
        if failures:
            raise Several(failures)

    def _steps(self, pod: Obj) -> Callable[[], float | None]:
        """One pod's next step each time: it says when it wants to go on; None when it is done."""
        state = {"pod": pod, "is_evicted": False}

        def step() -> float | None:
            if state["is_evicted"]:
                return self._look(pod, "evicted")
            pause = self._try(state)
            if pause is not None or not state["is_evicted"] or self._strategy == "server":
                return pause
            return self._look(pod, "evicted")

        return step

    def _try(self, state: Obj) -> float | None:
        session, meta = self._session, state["pod"]["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        suffix = " (server dry run)" if self._strategy == "server" else ""
        session.print(f"evicting pod {namespace}/{name}{suffix}")
        if session.clock.monotonic() > self._deadline:
            spent = duration_text(int(self._seconds * NANO))
            raise CliError(
                f'error when evicting pods/"{name}" -n "{namespace}": global timeout reached: '
                f"{spent}"
            )
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        body = {
            "apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": self._options,
            "metadata": {"name": name, "namespace": namespace},
        }  # fmt: skip
        try:
            session.api.json("POST", f"{path}/eviction", body=body)
            state["is_evicted"] = True
            return None
        except ApiError as error:
            if error.code == 404:
                return None
            return self._again(error, state, path)

    def _again(self, error: ApiError, state: Obj, path: str) -> float | None:
        session, meta = self._session, state["pod"]["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        causes = error.details.get("causes") or []
        is_ending = error.reason == "Forbidden" and any(
            cause.get("reason") == "NamespaceTerminating" for cause in causes
        )
        delay = duration_text(int(RETRY_SECONDS * NANO))
        if error.reason == "TooManyRequests":
            session.complain(
                f'error when evicting pods/"{name}" -n "{namespace}" (will retry after {delay}): '
                f"{error.message}"
            )
        elif is_ending and meta.get("deletionTimestamp"):
            state["is_evicted"] = True
            return None
        elif is_ending:
            session.complain(
                f'error when evicting pod "{name}" from terminating namespace "{namespace}" (will '
                f"retry after {delay}): {error.message}"
            )
        else:
            raise CliError(
                f'error when evicting pods/"{name}" -n "{namespace}": {error.message}'
            ) from error
        with contextlib.suppress(ApiError):  # else as it was known
            state["pod"] = session.api.json("GET", path)
        return RETRY_SECONDS

    def _look(self, pod: Obj, word: str) -> float | None:
        """None when the pod is gone."""
        meta = pod["metadata"]
        if self._is_gone(pod, word):
            return None
        if self._session.clock.monotonic() > self._deadline:
            why = "context deadline exceeded"
            raise CliError(
                f'error when waiting for pod "{meta["name"]}" in namespace "{meta["namespace"]}" '
                f"to terminate: {why}"
            )
        left = self._deadline - self._session.clock.monotonic()
        return min(POLL_SECONDS, max(left, 0.0) + 0.001)

    def _is_gone(self, pod: Obj, word: str) -> bool:
        session, meta = self._session, pod["metadata"]
        try:
            live = session.api.json(
                "GET", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            )
        except ApiError as error:
            if error.code != 404:
                session.print(f"pod/{meta['name']} {_FAILED[word]}")
                raise CliError(error.message) from error
            live = None
        if live is None or live["metadata"].get("uid") != meta.get("uid"):
            session.print(f"pod/{meta['name']} {word}")
            return True
        if is_long_gone(session, self._values, live):
            seconds = self._values["skip-wait-for-delete-timeout"]
            session.print(
                f'pod "{meta["name"]}" has DeletionTimestamp older than {seconds} seconds, skipping'
            )
            return True
        return False

    def _delete(self, chosen: list[Obj]) -> None:
        session = self._session
        options = {"kind": "DeleteOptions", "apiVersion": "v1", **self._options}
        for pod in chosen:
            meta = pod["metadata"]
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            try:
                session.api.json("DELETE", path, body=options)
            except ApiError as error:
                if error.code != 404:
                    raise
        left = chosen
        while left := [pod for pod in left if not self._is_gone(pod, "deleted")]:
            if session.clock.monotonic() > self._deadline:
                raise CliError("context deadline exceeded")
            rest = self._deadline - session.clock.monotonic()
            time.sleep(min(POLL_SECONDS, max(rest, 0.0) + 0.001))


_FAILED = {"evicted": "eviction failed", "deleted": "deletion failed"}
