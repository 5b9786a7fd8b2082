"""Documents that cannot rot: what they name exists, and what exists is named."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sampan"
MOST_FRAGMENTS = 120


def text(name: str) -> str:
    return (ROOT / name).read_text()


def test_every_file_that_the_architecture_names_is_there():
    parts = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    for named in re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text("ARCHITECTURE.md")):
        if named.split("/")[0] in parts:
            assert (PACKAGE / named).exists(), named


def test_the_architecture_is_short_enough_to_be_read():
    assert len(text("ARCHITECTURE.md").splitlines()) <= 300


def test_the_architecture_has_lines_that_can_be_read():
    lines = text("ARCHITECTURE.md").splitlines()
    assert [line for line in lines if len(line) > 140 and not line.startswith("|")] == []


def test_modules_speak_of_modules_that_there_are():
    known = {path.name for top in ("src", "tests") for path in (ROOT / top).rglob("*.py")}
    for path in PACKAGE.rglob("*.py"):
        for named in re.findall(r"\b(?:[a-z_0-9]+/)*([a-z_0-9]+\.py)\b", path.read_text()):
            assert named in known | {"setup.py"}, f"{path}: {named}"


def test_every_item_of_the_specification_has_its_state():
    """docs/compatibility.md lists every item with works, partly or not yet."""
    items = {"C": 6, "A": 11, "E": 3, "S": 6, "N": 22, "R": 3, "X": 6, "W": 7, "H": 7, "V": 4}
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


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
PARTS = "|".join(sorted(path.name for path in PACKAGE.iterdir() if path.is_dir()))
# A file of the project, in prose: from the top, or below src/sampan/ by its part; `*` and `{a,b}`
# stand for several.
MENTIONED = re.compile(
    rf"(?<![\w./-])((?:tests|src|docs|tools|examples|{PARTS})/[\w./*{{}},-]+\.(?:py|md|json|csv|toml|yaml))"
    r"(?:::(\w+))?"
)


def alternatives(path: str) -> list[str]:
    """`a/{b,c}.py` → `a/b.py`, `a/c.py`."""
    head, brace, rest = path.partition("{")
    if not brace:
        return [path]
    inside, _, tail = rest.partition("}")
    return [found for each in inside.split(",") for found in alternatives(f"{head}{each}{tail}")]


def files_named(path: str) -> list[Path]:
    return [found for base in (ROOT, PACKAGE) for found in base.glob(path)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_and_test_that_a_page_mentions_is_there(page):
    if page.name == "CHANGELOG.md":
        return
    for mentioned, test in MENTIONED.findall(page.read_text()):
        for path in alternatives(mentioned):
            found = files_named(path)
            assert found, path
            if test:
                source = "".join(file.read_text() for file in found)
                assert re.search(rf"^(async )?def {test}\b", source, re.M), f"{path}::{test}"


def test_changes_are_gathered_before_there_are_too_many():
    """Each is one sentence for users; a release gathers them into CHANGELOG.md."""
    fragments = [path.name for path in (ROOT / "changes").iterdir() if path.suffix == ".md"]
    names = re.compile(r"\d+\.(added|changed|fixed|removed)\.md")
    assert [name for name in fragments if not names.fullmatch(name)] == []
    assert len(fragments) <= MOST_FRAGMENTS


def test_the_changelog_has_every_release_and_what_comes_next():
    version = re.search(r'^VERSION = "([\d.]+)(\.dev\d+)?"', text("src/sampan/version.py"), re.M)
    headings = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.M)
    assert headings[0] == ("Unreleased" if version[2] else version[1])
    assert "0.1.0" in headings
