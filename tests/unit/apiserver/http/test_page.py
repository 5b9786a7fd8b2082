"""apiserver/http/page.py: the files of the page, and what goes with them."""

import re
import zlib

import pytest

from sampan.apiserver.authn.page_sessions import PageSessions
from sampan.apiserver.http.page import FOLDER, Page
from sampan.core.http.messages import Request
from tests.support.manual_clock import ManualClock

MOST_BYTES = 300 * 1024
FILES = sorted(path.name for path in FOLDER.iterdir())


@pytest.fixture
def page():
    return Page(PageSessions(ManualClock()))


def get(page, path, method="GET", **headers):
    return page.reply(Request(method, path, "", headers))


def test_the_page_is_small():
    packed = sum(len(zlib.compress(path.read_bytes(), 9)) for path in FOLDER.iterdir())
    assert packed <= MOST_BYTES


@pytest.mark.parametrize("name", ["", *FILES])
def test_every_file_is_served_with_its_type_and_what_keeps_it_safe(page, name):
    reply = get(page, f"/ui/{name}")
    headers = dict(reply.headers)
    assert reply.status == 200
    assert headers["content-type"].split(";")[0] in (
        "text/html", "text/css", "text/javascript", "image/svg+xml",
    )  # fmt: skip
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_what_the_browser_has_is_not_sent_again(page):
    etag = dict(get(page, "/ui/app.js").headers)["etag"]
    assert get(page, "/ui/app.js", **{"if-none-match": etag}).status == 304
    packed = get(page, "/ui/app.js", **{"accept-encoding": "br, gzip"})
    assert dict(packed.headers)["content-encoding"] == "gzip"
    assert zlib.decompress(packed.body, 31) == (FOLDER / "app.js").read_bytes()


@pytest.mark.parametrize(
    "path", ["/ui/../version.py", "/ui/%2e%2e/version.py", "/ui//etc/passwd", "/ui/none.js"]
)
def test_nothing_else_is_served(page, path):
    assert get(page, path).status == 404


def test_other_paths_are_not_the_pages(page):
    assert get(page, "/uix") is None
    assert dict(get(page, "/ui").headers)["location"] == "/ui/"
    assert get(page, "/ui/app.js", "POST").status == 405


@pytest.mark.parametrize("name", FILES)
def test_the_page_fetches_nothing_from_elsewhere_and_writes_no_markup(name):
    text = (FOLDER / name).read_text()
    elsewhere = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+", text)
    assert set(elsewhere) <= {"http://www.w3.org"}  # a name, not a place
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text)


def test_every_module_that_is_imported_is_there():
    for name in FILES:
        if name.endswith(".js"):
            imported = re.findall(r'from "\./([a-z_]+\.js)"|import\("\./([a-z_]+\.js)"\)',
                                  (FOLDER / name).read_text())  # fmt: skip
            assert {first or second for first, second in imported} <= set(FILES), name
