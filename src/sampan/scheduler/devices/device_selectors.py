"""CEL selectors of devices.

Job: compile an expression once, ask it about a device once.
Invariant: the language is loaded with the first selector; what is remembered is bounded.
Owner: DeviceAllocation.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sampan.core.bounded import FlushedMemo
from sampan.scheduler.devices.devices import Device

if TYPE_CHECKING:
    from sampan.api.cel.language.cost import Budget
    from sampan.api.cel.language.environment import Environment
    from sampan.api.cel.program import Program

MOST_PROGRAMS, MOST_ANSWERS = 1000, 100_000


class BadSelector(Exception):
    """It cannot be compiled, or has no answer for a device."""


class TakesLong(Exception):
    """More than the caller wants to wait for."""


class Selectors:
    def __init__(self) -> None:
        self._environment: Environment | None = None
        self._programs: FlushedMemo[str, Program] = FlushedMemo(MOST_PROGRAMS)
        # Each entry keeps its device alive, so that no other has its identity.
        self._answers: FlushedMemo[tuple[str, int], tuple[Device, bool | BadSelector]]
        self._answers = FlushedMemo(MOST_ANSWERS)
        self._asked: FlushedMemo[int, tuple[Device, Mapping[str, object]]]
        self._asked = FlushedMemo(MOST_ANSWERS)

    def forget(self) -> None:
        """Devices have changed."""
        self._answers.clear()
        self._asked.clear()

    def match(self, device: Device, expression: str, budget: "Budget | None" = None) -> bool:
        """Raises BadSelector; TakesLong where the budget is used up. Also beside the loop: what two
        threads find out is the same."""
        key = (expression, id(device))
        known = self._answers.known.get(key)
        if known is None:
            answer: bool | BadSelector
            try:
                answer = self._evaluate(device, expression, budget)
            except BadSelector as error:
                answer = error
            known = self._answers.keep(key, (device, answer))
        found = known[1]
        if isinstance(found, BadSelector):
            raise found
        return found

    def _evaluate(self, device: Device, expression: str, budget: "Budget | None") -> bool:
        # The language is large, and most clusters have no devices.
        from sampan.api.cel.language.errors import CostExceeded, EvaluationError

        program = self._program(expression)
        known = self._asked.known.get(id(device))
        if known is None:
            known = self._asked.keep(id(device), (device, self._values(device)))
        try:
            answer = program.evaluate({"device": known[1]}, budget)
        except (EvaluationError, CostExceeded) as error:
            if isinstance(error, CostExceeded) and budget is not None and budget.left <= 0:
                raise TakesLong from error
            raise BadSelector(f"CEL runtime error: {error}") from error
        if not isinstance(answer, bool):
            raise BadSelector("CEL runtime error: the expression is not of type bool")
        return answer

    def _program(self, expression: str) -> "Program":
        from sampan.api.cel.language.errors import CompileError
        from sampan.api.cel.program import compile_expression

        found = self._programs.known.get(expression)
        if found is None:
            try:
                found = compile_expression(expression, self._devices())
            except CompileError as error:
                raise BadSelector(f"CEL compile error: {error}") from error
            self._programs.keep(expression, found)
        return found

    def _devices(self) -> "Environment":
        from sampan.api.cel.catalog import KUBERNETES_DEVICES
        from sampan.api.cel.language.environment import Environment
        from sampan.api.cel.language.types import DYN

        if self._environment is None:
            self._environment = Environment({"device": DYN}, KUBERNETES_DEVICES)
        return self._environment

    def _values(self, device: Device) -> dict[str, object]:
        """By domain and name; a domain that is not there is empty."""
        from sampan.api.quantity import value_of

        attributes, capacity = _Domains(), _Domains()
        for name, (kind, value) in device.attributes.items():
            attributes.put(name, self._version(value) if kind == "version" else value)
        for name, text in device.capacity.items():
            capacity.put(name, value_of(text))
        return {"driver": device.id[0], "attributes": attributes, "capacity": capacity}

    def _version(self, text: object) -> object:
        return self._program(f"semver({str(text)!r})").evaluate({})


class _Domains(Mapping[str, Mapping[str, object]]):
    """As upstream: to ask for a domain that a device has nothing of is no mistake."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, object]] = {}

    def put(self, name: str, value: object) -> None:
        domain, _, short = name.partition("/")
        self._known.setdefault(domain, {})[short] = value

    def __getitem__(self, domain: str) -> Mapping[str, object]:
        return self._known.get(domain, {})

    def __contains__(self, domain: object) -> bool:
        return domain in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
