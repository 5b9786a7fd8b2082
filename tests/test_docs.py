"""Documents that cannot rot: what they name exists, and what exists is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sampan"


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_every_file_that_the_architecture_names_is_there():
    parts = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    for named in re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text("ARCHITECTURE.md")):
        if named.split("/")[0] in parts:
            assert (PACKAGE / named).exists(), named


def test_the_architecture_is_short_enough_to_be_read():
    assert len(text("ARCHITECTURE.md").splitlines()) <= 300


def test_every_item_of_the_specification_has_its_state():
    """docs/compatibility.md lists every item with works, partly or not yet."""
    items = {"C": 6, "A": 11, "E": 3, "S": 6, "N": 22, "R": 3, "X": 6, "W": 7}
    document = text("docs/compatibility.md")
    for letter, count in items.items():
        for number in range(1, count + 1):
            row = re.search(
                rf"^\| {letter}{number} \|[^|]*\| (works|partly|not yet) \|", document, re.M
            )
            assert row, f"{letter}{number}"


@pytest.mark.parametrize("folder", ["filters", "scores"])
def test_every_scheduling_rule_is_documented(folder):
    document = text("docs/scheduler.md")
    for path in (PACKAGE / "scheduler" / folder).glob("*.py"):
        if path.name != "__init__.py":
            assert f"`{path.stem}`" in document, path.stem


def test_every_admission_plugin_is_documented():
    document = text("docs/compatibility.md")
    table = (PACKAGE / "apiserver" / "admission" / "plugins.py").read_text()
    names = re.findall(r'Row\("([A-Za-z]+)"', table)
    assert len(names) > 30
    for name in names:
        assert name in document, name


def test_decisions_are_numbered_without_gaps():
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def pages_walked() -> dict[str, str]:
    """The page of every `@page(...)` in tests/e2e/tasks → the file of its test."""
    found = {}
    for path in (ROOT / "tests" / "e2e" / "tasks").glob("test_*.py"):
        source = path.read_text()
        names = dict(re.findall(r'^([A-Z]+) = "([a-z/-]+)"', source, re.M))
        for formatted, page in re.findall(r'^@page\((f?)"([^"]+)"\)', source, re.M):
            whole = page.format(**names) if formatted else page
            found[whole] = path.name
    return found


def test_every_page_that_a_test_walks_has_its_row():
    rows = dict(re.findall(r"^\| ([a-z0-9/-]+) \| works \| (.*) \|$", text("docs/tasks.md"), re.M))
    for page, file in pages_walked().items():
        assert file in rows[page], page


def test_every_row_of_the_task_pages_names_a_test_that_exists():
    rows = re.findall(r"^\| [a-z0-9/-]+ \| works \| (.*) \|$", text("docs/tasks.md"), re.M)
    assert len(rows) > 60
    for row in rows:
        for file, name in re.findall(r"`([a-z_/]+\.py)::(\w+)`", row):
            assert re.search(rf"^def {name}\(", text(f"tests/e2e/{file}"), re.M), row


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *ROOT.glob("docs/**/*.md")], ids=lambda path: path.stem
)
def test_every_link_leads_somewhere(path):
    for target in re.findall(r"\]\(([\w./:-]+)[^)]*\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_readme_is_short_and_leads_to_every_guide():
    readme = text("README.md")
    assert len(readme.splitlines()) <= 150
    for page in (ROOT / "docs" / "guide").glob("*.md"):
        assert f"(docs/guide/{page.name})" in readme, page.name
