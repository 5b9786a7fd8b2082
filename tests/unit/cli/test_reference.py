"""cli/reference.py: docs/cli.md says what the parser knows."""

from pathlib import Path

from sampan.cli.reference import text

DOCUMENT = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_document_is_made_from_the_parser():
    assert DOCUMENT.read_text() == text(), "python -m sampan.cli.reference > docs/cli.md"
