"""tools/kit_reference.py: docs/kit.md says what the kit's source says."""

import inspect
from pathlib import Path

from sampan.testing.kit.cluster import Cluster
from sampan.testing.kit.spec import FIELDS
from tools import kit_reference as reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "kit.md"


def test_the_document_is_made_from_the_source():
    made = DOCUMENT.read_text()
    assert made == reference.text(), "python tools/kit_reference.py > docs/kit.md"


def test_what_a_test_can_call_is_in_it():
    text = reference.text()
    for name, _ in inspect.getmembers(Cluster):
        assert name.startswith("_") or f"c.{name}" in text, name
    for field in FIELDS:
        assert f"        {field}: " in text
    assert "    c.kubeconfig → Path\n" in text
    assert "    with c.operator(" in text
