"""cmd/verbs/machine/ui.py: when a browser is opened, and with what."""

import re

import pytest

from sampan.cmd.verbs.machine.ui import has_screen, redirect


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
        ({"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, "darwin", False),
    ],
)
def test_a_browser_is_opened_where_somebody_can_see_it(environ, platform, expected):
    assert has_screen(environ, platform) is expected


def test_a_servers_name_is_no_markup_in_the_file_that_leads_there():
    text = redirect('https://x/"><script>alert(1)</script>#code=abc')
    assert "<script" not in text
    assert re.findall(r'href="([^"]*)"', text)[0].endswith("#code=abc")
