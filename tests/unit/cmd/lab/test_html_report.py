"""Reports as a page: whole, and safe whatever names say."""

from html.parser import HTMLParser

from sampan.cmd.lab.html_report import page
from sampan.cmd.lab.summary import report_of
from tests.support.generators.lab_records import record

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'"


class Tags(HTMLParser):
    opened: list
    text: list

    def handle_starttag(self, tag, attrs):
        self.opened.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def read(text):
    tags = Tags()
    tags.opened, tags.text = [], []
    tags.feed(text)
    return tags


def test_a_page_has_lines_and_tables():
    tags = read(page([report_of(record(), "default")]))
    kinds = [tag for tag, _ in tags.opened]
    assert kinds.count("svg") == 2
    assert kinds.count("table") == 6
    assert "Insufficient cpu" in tags.text


def test_two_are_compared_on_one_page():
    tags = read(page([report_of(record(), "a"), report_of(record(), "b")]))
    assert "Compared" in tags.text


def test_names_and_messages_are_text_and_nothing_else():
    hostile = record(why=HOSTILE)
    for each in hostile["pods"]:
        each["name"] = each["stream"] = each["preempted_by"] = HOSTILE
    for each in hostile["nodes"]:
        each["kind"] = each["zone"] = HOSTILE
    hostile["plugins"] = {f"{HOSTILE.replace(' ', '')} Filter": (1, 0.1)}
    text = page([report_of(hostile, HOSTILE), report_of(hostile, HOSTILE)])
    tags = read(text)
    assert {tag for tag, _ in tags.opened} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "ul", "li", "p",
        "span", "svg", "polyline", "table", "tr", "th", "td",
    }  # fmt: skip
    assert not any(name.startswith("on") for _, given in tags.opened for name in given)
    assert "default-src 'none'" in text
    assert HOSTILE in tags.text
