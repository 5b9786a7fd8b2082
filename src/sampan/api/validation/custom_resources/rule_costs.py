"""What the rules of a schema may cost, before any object is there.

Job: estimate each rule's worst case from the sizes that the schema allows, and the sum of all.
Invariant: a rule is refused for what it may cost with the largest object that its schema accepts.
"""

from sampan.api.cel.language.environment import Environment
from sampan.api.cel.program import Program
from sampan.api.custom.structural import Structural
from sampan.api.errors import FieldError

Errors = list[FieldError]


class RuleCosts:
    def most_items(self, node: Structural) -> int:
        return 1

    def add_rule(
        self, program: Program, environment: Environment, node: Structural, count: int,
        path: str, errors: Errors,
    ) -> None:  # fmt: skip
        pass

    def add_message(
        self, program: Program, environment: Environment, node: Structural, count: int,
        path: str, errors: Errors,
    ) -> None:  # fmt: skip
        pass

    def add_total(self, path: str, errors: Errors) -> None:
        pass
