"""Pods: create, update, status and binding.

Job: what must hold of a Pod, and what may change in one.
Invariant: a pod's spec is immutable but for the fields that `_validate_spec_update` names.
"""

from sampan.api.validation.rules import Rules

RULES = Rules()
