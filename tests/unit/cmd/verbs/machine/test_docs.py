"""cmd/verbs/machine/docs.py: the pages of an archive, served or unpacked."""

import threading
import urllib.error
import urllib.request
import zipfile

import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.verbs.machine import docs

PAGES = {"index.html": b"<p>a", "guide/app.html": b"<p>b", "site/site.js": b"// c"}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "docs.zip"
    with zipfile.ZipFile(path, "w") as opened:
        for name, content in PAGES.items():
            opened.writestr(name, content)
    return path


@pytest.fixture
def address():
    server = docs._Server(0, PAGES)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield "http://127.0.0.1:{1}/".format(*server.server_address)
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.mark.parametrize(
    ("place", "expected", "kind"),
    [
        ("", b"<p>a", "text/html; charset=utf-8"),
        ("?q=1", b"<p>a", "text/html; charset=utf-8"),
        ("guide/app.html", b"<p>b", "text/html; charset=utf-8"),
    ],
)
def test_a_page_of_the_archive_is_served(address, place, expected, kind):
    with urllib.request.urlopen(address + place) as answer:
        assert (answer.read(), answer.headers["Content-Type"]) == (expected, kind)


@pytest.mark.parametrize("place", ["nothing.html", "../docs.py", "guide/"])
def test_what_is_not_in_the_archive_is_not_there(address, place):
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(address + place)
    assert failed.value.code == 404
    failed.value.close()


def test_the_pages_are_written_where_nothing_else_is(archive, tmp_path, capsys):
    place = tmp_path / "site" / "here"
    assert docs.run(0, str(place), opens=False, archive=archive) == 0
    assert capsys.readouterr().out == f"{place}/index.html\n"
    written = {path.relative_to(place).as_posix(): path.read_bytes()
               for path in place.rglob("*") if path.is_file()}  # fmt: skip
    assert written == PAGES
    with pytest.raises(CannotStart, match="it is not empty"):
        docs.run(0, str(place), opens=False, archive=archive)


def test_without_an_archive_it_says_how_to_make_one(tmp_path):
    with pytest.raises(CannotStart, match="`make docs`"):
        docs.run(0, "", opens=False, archive=tmp_path / "none.zip")
