"""The documentation as a site: every page is there, and every link leads somewhere."""

import io
import re
import runpy
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tools.docs_site import navigation, place_of, texts

ROOT = Path(__file__).parents[2]
URL = "https://example.org/sampan/blob/v1"
site = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["site"]


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.targets = set(), []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        self.targets += [found[name] for name in ("href", "src") if name in found]


@pytest.fixture(scope="module")
def files():
    with zipfile.ZipFile(io.BytesIO(site(URL))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def pages(files):
    found = {}
    for name, content in files.items():
        if name.endswith(".html"):
            found[name] = Links()
            found[name].feed(content.decode())
    return found


def test_every_page_is_in_the_site_and_once_in_the_navigation(files):
    written = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert {"README.md", "ARCHITECTURE.md", *written} <= set(texts(ROOT))
    assert {place_of(source) for source in texts(ROOT)} <= set(files)
    listed = [source for sources in navigation(ROOT).values() for source in sources]
    assert len(listed) == len(set(listed))
    begin = files["guide/app.html"].decode()
    assert all(begin.count(f'">{name}</a></li>') == 1 for name in ("Try an app", "Decisions"))


def test_every_link_of_the_site_leads_somewhere(files, pages):
    for name, page in pages.items():
        for target in page.targets:
            path, _, anchor = target.partition("#")
            if "://" in path:
                continue
            place = Path(name).parent / path if path else Path(name)
            there = re.sub(r"[^/]+/\.\./", "", place.as_posix())
            assert there in files, f"{name}: {target}"
            assert not anchor or anchor in pages[there].ids, f"{name}: {target}"


def test_a_link_to_another_file_leads_to_the_project(files):
    assert f'href="{URL}/packaging/Containerfile"' in files["guide/ci.html"].decode()


def test_the_search_knows_every_page(files, pages):
    index = files["search-index.js"].decode()
    assert index.startswith("const INDEX = [")
    places = set(re.findall(r'^"([\w/.-]+\.html)', index, re.M))
    assert places == set(pages)


def test_the_same_text_makes_the_same_bytes(files):
    with zipfile.ZipFile(io.BytesIO(site(URL))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files
    assert sum(map(len, files.values())) < 2_000_000
