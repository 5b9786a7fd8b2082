"""A simulated container's script: what the annotations of its pod say about it.

Job: read the annotations; say what is wrong with one. Pure.

All are under `simulated.sampan.dev/`. Those marked * may end in `.CONTAINER` to mean one container
only:
    sandbox-seconds      how long the sandbox takes (0)
    create-seconds *     how long creating a container takes (0)
    start-seconds *      how long starting it takes (0)
    exit-after-seconds * ends by itself this long after its start, or `never` (init containers
                         at once, those of a Job's pods after a second, others never); sidecars and
                         ephemeral containers only where one is named
    exit-code *          with this code; `1,1,0` counts attempts, the last one stays (0)
    stop-seconds *       how long it takes to obey its stop signal; `never` waits for the kill (0)
    stop-exit-code *     its code when it obeys (0; 143 where it would have ended by itself)
    log *                lines that it writes when it starts, as a real log file
    exec-exit-code *     the answer of every exec (0)
    exec-output *        what such an exec prints
    liveness-probe *     `ok`, `fail` or `error`; `fail,fail,ok` counts looks, the last one stays;
    readiness-probe *    (ok; an exec probe without a script of its own asks exec-exit-code)
    startup-probe *
    usage-cpu *          how much it uses, for metrics.k8s.io: a quantity, or `= EXPRESSION` over
    usage-memory *       now, age and replicas (what it requests)
    metric.NAME          what custom.metrics.k8s.io says of the pod, in the same words
    http.PORT            what a client of that port is answered by HTTP: `BODY`, or `503 BODY`
    tcp.PORT             or what it is told as soon as it is connected
    fail                 `STEP:TIMES:MESSAGE`, several with `;`: STEP (run_sandbox,
                         create_container, start_container, stop_container, update_container,
                         remove_sandbox; allocate_devices and prepare_claims where the node
                         pretends plugins and drivers)
                         fails that many times; no TIMES: always
"""

from collections.abc import Mapping

from sampan.api.cel import amounts
from sampan.core.digits import is_digits
from sampan.kubelet.contracts.runtime import Role

PREFIX = "simulated.sampan.dev/"
_NUMBERS = (
    "sandbox-seconds", "create-seconds", "start-seconds", "exit-after-seconds", "stop-seconds",
    "stop-exit-code", "exec-exit-code",
)  # fmt: skip
_MAY_BE_NEVER = ("exit-after-seconds", "stop-seconds")
_TEXTS = ("log", "exec-output")
_PROBES = ("liveness-probe", "readiness-probe", "startup-probe")
_AMOUNTS = ("usage-cpu", "usage-memory")  # the API server's part reads them
_METRIC = "metric"
_PORTS = ("http", "tcp")
_WHOLE_POD = ("sandbox-seconds", "fail")
_WORDS = frozenset((*_NUMBERS, *_TEXTS, *_PROBES, *_AMOUNTS, *_PORTS, _METRIC, "exit-code", "fail"))
_STEPS = (
    "run_sandbox", "create_container", "start_container", "stop_container", "update_container",
    "remove_sandbox", "allocate_devices", "prepare_claims",
)  # fmt: skip


class Script:
    __slots__ = ("_annotations", "_container")

    def __init__(self, annotations: Mapping[str, str], container: str = "") -> None:
        self._annotations, self._container = annotations, container

    def text(self, name: str) -> str:
        one = self._annotations.get(f"{PREFIX}{name}.{self._container}")
        return one if one is not None else self._annotations.get(PREFIX + name, "")

    def number(self, name: str) -> float | None:
        """None where there is nothing, or nothing that is a number."""
        try:
            return float(self.text(name))
        except ValueError:
            return None

    def seconds(self, name: str) -> float:
        return max(0.0, self.number(name) or 0.0)

    def exit_after_seconds(self, role: Role) -> float | None:
        """None: it runs until it is stopped. What is said of a whole pod is not meant for what
        serves its other containers; what a pod waits for ends at once where nothing is said:
        nobody tests a pod that never starts."""
        named = f"{PREFIX}exit-after-seconds.{self._container}" in self._annotations
        if not named and role in (Role.SIDECAR, Role.EPHEMERAL):
            return None
        if role is Role.INIT and not self.text("exit-after-seconds"):
            return 0.0
        return self.number("exit-after-seconds")

    def stop_seconds(self) -> float | None:
        """None: it never obeys."""
        return None if self.text("stop-seconds") == "never" else self.seconds("stop-seconds")

    def stop_exit_code(self, role: Role) -> int:
        """Of one that obeys: work that is stopped before its end is not done."""
        told = self.number("stop-exit-code")
        if told is None:
            return 0 if self.exit_after_seconds(role) is None else 143
        return int(told)

    def exit_code(self, attempt: int) -> int:
        codes = [int(code) for code in self.text("exit-code").split(",") if is_digits(code.strip())]
        return codes[min(attempt, len(codes) - 1)] if codes else 0

    def failure(self, step: str) -> tuple[int | None, str] | None:
        """How often the step fails (None: always), and with what message."""
        for entry in self.text("fail").split(";"):
            name, _, rest = entry.strip().partition(":")
            if name == step:
                times, _, message = rest.partition(":")
                count = int(times) if is_digits(times) else None
                return count, message or f"{step} fails by script"
        return None


def problem_of(name: str, text: str) -> str:
    """What is wrong with one annotation (its name without the prefix); empty: nothing."""
    word, _, container = name.partition(".")
    if word not in _WORDS:
        return f"{name}: unknown"
    if word in _PORTS and not (is_digits(container) and 0 < int(container) < 65536):
        return f"{name}: {container!r} is no port"
    if container and word in _WHOLE_POD:
        return f"{name}: {word} is of the whole pod"
    if word in _AMOUNTS:
        found = amounts.problem_of(text)
    elif word == _METRIC:
        found = amounts.problem_of_series(text)
    else:
        found = _value_problem(word, text)
    return f"{name}: {found}" if found else ""


def _value_problem(word: str, text: str) -> str:
    listed = [part.strip() for part in text.split(",")]
    if word in _NUMBERS and not (word in _MAY_BE_NEVER and text == "never"):
        return "" if _is_number(text) else f"{text!r} is no number"
    if word == "exit-code" and not all(is_digits(item) for item in listed):
        return f"{text!r} is no list of exit codes"
    if word in _PROBES and not {*listed} <= {"ok", "fail", "error"}:
        return f"{text!r} is no list of ok, fail and error"
    if word == "fail":
        unknown = [part for part in text.split(";") if part.strip().partition(":")[0] not in _STEPS]
        return f"{unknown[0]!r} names no step ({', '.join(_STEPS)})" if unknown else ""
    return ""


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False
