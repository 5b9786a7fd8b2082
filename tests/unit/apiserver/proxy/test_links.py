import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.apiserver.proxy.links import HELD_BYTES, link_through, page_through, pages_through

PREFIX = "/api/v1/namespaces/default/pods/web:80/proxy"
HOST = "10.0.0.1:80"


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("/a/b?c=d#e", f"{PREFIX}/a/b?c=d#e"),
        ("/", f"{PREFIX}/"),
        (f"http://{HOST}/a/", f"{PREFIX}/a/"),
        (f"//{HOST}/a", f"{PREFIX}/a"),
        ("a/b", "a/b"),
        ("?a=b", "?a=b"),
        ("#top", "#top"),
        ("https://example.org/a", "https://example.org/a"),
        ("mailto:a@example.org", "mailto:a@example.org"),
        (f"{PREFIX}/a", f"{PREFIX}/a"),
        ("http://[", "http://["),
    ],
)
def test_links_to_the_same_server_go_through_the_proxy(link, shown):
    assert link_through(PREFIX, link, HOST) == shown


def test_a_page_is_the_same_but_for_its_links():
    page = (
        b'<!doctype html><html><body class="x" data-href="/no">'
        b"<a href='/a'>/not a link</a><IMG alt=\"<\" SRC=/b.png><img src=/b.png >"
        b'<a title="/t" href="rel">x</a><form action="/post">1 < 2</form><p id="/x">'
    )
    assert page_through("/p", page, HOST) == (
        b'<!doctype html><html><body class="x" data-href="/no">'
        b'<a href="/p/a">/not a link</a><IMG alt="<" SRC=/b.png><img src="/p/b.png" >'
        b'<a title="/t" href="rel">x</a><form action="/p/post">1 < 2</form><p id="/x">'
    )


async def chunks_of(parts):
    for part in parts:
        yield part


async def joined(chunks):
    return b"".join([chunk async for chunk in chunks])


@given(st.lists(st.integers(0, 60), max_size=5))
def test_it_does_not_matter_how_a_page_comes(cuts):
    page = b'<p>text</p><a href="/a">b</a> 1 < 2 <img src="/c.png"><br>' * 2
    edges = sorted({0, *cuts, len(page)})
    parts = [page[a:b] for a, b in itertools.pairwise(edges)]
    found = asyncio.run(joined(pages_through("/p", chunks_of(parts), HOST)))
    assert found == page_through("/p", page, HOST)


def test_what_is_held_back_is_bounded():
    async def story():
        chunks = pages_through("/p", chunks_of([b"<" + b"x" * HELD_BYTES, b"y"]), HOST)
        assert len(await anext(chunks)) > HELD_BYTES

    asyncio.run(story())
