"""The documentation as a site: pages of HTML, made of the Markdown that is in the repository.

Job: README, ARCHITECTURE and docs/ → pages with a navigation, and an index for the search, in one
    archive. The build does it (setup.py) and puts it into the wheel, for `sampan docs`; by hand:
    `make docs`, which also unpacks it.
Invariant: every page is in the navigation once, by itself or in the contents of its folder; a link
    between pages leads to a page, one to another file of the repository to where the project is.
Invariant: the same Markdown makes the same bytes.
Invariant: the build has no sampan yet: nothing of it is imported.
"""

import html
import io
import json
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# What people look for first; a folder is all of its other pages.
SECTIONS = {
    "Begin": (
        "README.md", "docs/guide/concepts.md", "docs/guide/app.md", "docs/running.md",
        "docs/guide/troubleshooting.md", "docs/errors.md", "docs/guide/",
    ),
    "Tests and simulation": (
        "docs/testkit.md", "docs/kit.md", "docs/simulated.md", "docs/lab.md", "docs/drivers.md",
    ),
    "Reference": (
        "docs/cli.md", "docs/compatibility.md", "docs/page.md", "docs/traces.md",
        "docs/metrics/README.md", "docs/tasks.md", "docs/",
    ),
    "Operation": (
        "docs/production.md", "docs/authentication.md", "docs/security.md", "docs/node.md",
        "docs/performance.md", "docs/bugs.md",
    ),
    "Inside": (
        "ARCHITECTURE.md", "docs/scheduler.md", "docs/controllers.md", "docs/flows/README.md",
        "docs/decisions/README.md",
    ),
}  # fmt: skip
# Pages that are made here: the contents of a folder.
CONTENTS = {"docs/flows/README.md": "Flows", "docs/decisions/README.md": "Decisions"}
ASSETS = ("docs/site/site.css", "docs/site/site.js")
LONGEST_TEXT = 400  # of a section, in the index
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_MENTION = re.compile(r"(?<![\w./-])((?:docs/[\w/-]+|ARCHITECTURE|README)\.md)(?![\w#])")
_PICTURES = (".svg", ".png")


class Page(NamedTuple):
    source: str  # from the top of the repository
    title: str
    body: str
    sections: tuple[tuple[str, str, str], ...]  # anchor, heading, text

    @property
    def place(self) -> str:
        return place_of(self.source)


def place_of(source: str) -> str:
    """Of a page in the site."""
    if source == "README.md":
        return "index.html"
    name = source.removeprefix("docs/").removesuffix(".md").lower()
    return f"{name}.html"


def navigation(root: Path) -> dict[str, list[str]]:
    """The pages of each section, in their order."""
    named = {one for names in SECTIONS.values() for one in names}
    found: dict[str, list[str]] = {}
    for section, names in SECTIONS.items():
        found[section] = []
        for name in names:
            inside = _inside(root, name) if name.endswith("/") else [name]
            found[section] += [one for one in inside if one not in named or one == name]
    return found


def _inside(root: Path, folder: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in sorted((root / folder).glob("*.md"))]


def texts(root: Path) -> dict[str, str]:
    """All pages: those of the navigation, and those of the contents."""
    found: dict[str, str] = {}
    for source in (one for names in navigation(root).values() for one in names):
        if source not in CONTENTS:
            found[source] = (root / source).read_text()
            continue
        inside = {one: (root / one).read_text() for one in _inside(root, posixpath.dirname(source))}
        rows = [f"- [{_title(text)}]({posixpath.basename(one)})" for one, text in inside.items()]
        found |= {source: "\n".join([f"# {CONTENTS[source]}", "", *rows]), **inside}
    return found


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def site(root: Path, parser: Any, url: str = "") -> bytes:
    """The archive. `parser`: markdown_it's; `url`: of a tree of the repository, for links to files
    that are no pages."""
    order, found = navigation(root), texts(root)
    render = _Renderer(set(found), parser, url)
    pages = {source: render.page(source, text) for source, text in found.items()}
    files: dict[str, bytes] = {}
    for page in pages.values():
        files[page.place] = _document(page, order, pages).encode()
    files["search-index.js"] = _index(pages.values())
    for asset in (*ASSETS, *sorted(render.pictures)):
        files[asset.removeprefix("docs/")] = (root / asset).read_bytes()
    return _archive(files)


class _Renderer:
    def __init__(self, pages: set[str], parser: Any, url: str) -> None:
        self._pages, self._parser, self._url = pages, parser, url
        self.pictures: set[str] = set()

    def page(self, source: str, text: str) -> Page:
        tokens = self._parser.parse(text)
        seen: dict[str, int] = {}
        sections: list[tuple[str, str, list[str]]] = [("", "", [])]
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                heading = _plain(tokens[at + 1])
                anchor = _anchor(heading, seen)
                token.attrSet("id", anchor)
                sections.append((anchor, heading, []))
            elif token.type == "inline" and tokens[at - 1].type != "heading_open":
                sections[-1][2].append(_plain(token))
            for child in token.children or ():
                self._lead(child, source)
            if token.type == "inline":
                token.children = list(self._linked(token.children or (), source))
        title = next((heading for _, heading, _ in sections if heading), source)
        body = self._parser.renderer.render(tokens, self._parser.options, {})
        told = tuple((anchor, name, " ".join(text)) for anchor, name, text in sections)
        return Page(source, title, str(body), told)

    def _lead(self, token: Any, source: str) -> None:
        """A link or a picture of the repository becomes one of the site."""
        name = {"link_open": "href", "image": "src"}.get(token.type)
        if name is None or not (target := str(token.attrGet(name) or "")):
            return
        path, mark, anchor = target.partition("#")
        if "://" in target or not path:
            return
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if file in self._pages:
            token.attrSet(name, f"{_way(source, place_of(file))}{mark}{anchor}")
        elif file.endswith(_PICTURES):
            self.pictures.add(file)
            token.attrSet(name, _way(source, file.removeprefix("docs/")))
        elif f"{file}/README.md" in self._pages:
            token.attrSet(name, _way(source, place_of(f"{file}/README.md")))
        else:
            token.attrSet(name, f"{self._url}/{file}" if self._url else "#")

    def _linked(self, tokens: Sequence[Any], source: str) -> Iterator[Any]:
        """Pages that are only mentioned are links, too."""
        depth = 0
        for token in tokens:
            make = type(token)
            depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
            if depth or token.type not in ("text", "code_inline"):
                yield token
                continue
            parts = _MENTION.split(token.content)
            for at, part in enumerate(parts):
                made = make(token.type, token.tag, 0, content=part, markup=token.markup)
                if at % 2 == 0 or part not in self._pages:
                    yield made
                    continue
                opened = make("link_open", "a", 1)
                opened.attrSet("href", _way(source, place_of(part)))
                yield from (opened, made, make("link_close", "a", -1))


def _way(source: str, target: str) -> str:
    """From one page to another place of the site."""
    return posixpath.relpath(target, posixpath.dirname(place_of(source)) or ".")


def _plain(inline: Any) -> str:
    kept = ("text", "code_inline", "softbreak")
    return "".join(
        token.content or " " for token in inline.children or () if token.type in kept
    ).strip()


def _anchor(heading: str, seen: dict[str, int]) -> str:
    """As forges make them of a heading: links of the Markdown lead there, too."""
    name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    count = seen[name] = seen.get(name, -1) + 1
    return f"{name}-{count}" if count else name


def _document(page: Page, order: Mapping[str, Sequence[str]], pages: Mapping[str, Page]) -> str:
    top = _way(page.source, "index.html").removesuffix("index.html")
    listed = []
    for section, sources in order.items():
        listed.append(f"<h2>{html.escape(section)}</h2><ul>")
        for source in sources:
            here = ' aria-current="page"' if source == page.source else ""
            way, title = _way(page.source, place_of(source)), html.escape(pages[source].title)
            listed.append(f'<li><a href="{way}"{here}>{title}</a></li>')
        listed.append("</ul>")
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(page.title)} – sampan</title>
<link rel="stylesheet" href="{top}site/site.css">
<script src="{top}site/site.js" data-top="{top}" defer></script>
</head>
<body>
<a class="skip" href="#content">To the text</a>
<header>
<a class="name" href="{top}index.html">sampan</a>
<input id="search" type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off">
<ol id="found" hidden></ol>
</header>
<nav aria-label="Pages"><details open><summary>Pages</summary>
{"".join(listed)}
</details></nav>
<main id="content">
{page.body}</main>
</body>
</html>
"""


def _index(pages: Iterable[Page]) -> bytes:
    """[place, page, heading, text] of each section, as a script: a page on a disk loads it, too."""
    rows = []
    for page in pages:
        for anchor, heading, text in page.sections:
            if heading or text:
                place = f"{page.place}#{anchor}" if anchor else page.place
                rows.append([place, page.title, heading, text[:LONGEST_TEXT]])
    return f"const INDEX = {json.dumps(rows, ensure_ascii=False, indent=0)};\n".encode()


def _archive(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in sorted(files):
            about = zipfile.ZipInfo(name, FIRST_DATE)
            archive.writestr(about, files[name], zipfile.ZIP_DEFLATED, 9)
    return made.getvalue()
