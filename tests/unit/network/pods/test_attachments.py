from sampan.network.pods.attachments import Attachment, Attachments
from sampan.network.pods.plugin_protocol import PortMapping

FIRST = Attachment("abc", "eth0", "veth1", ("10.244.0.2/24", "fd00::2/64"),
                   (PortMapping(8080, 80, "TCP", "192.0.2.1"),))  # fmt: skip
SECOND = Attachment("def", "eth0", "veth2", ("10.244.0.3/24",))


def test_whoever_comes_next_finds_what_was_there(tmp_path):
    before = Attachments(tmp_path / "a")
    before.put(FIRST)
    before.put(SECOND)
    before.remove(SECOND)
    after = Attachments(tmp_path / "a")
    assert after.all() == [FIRST]
    assert after.get(("abc", "eth0")) == FIRST
    assert after.of_container("abc") == [FIRST]
    assert after.of_container("def") == []


def test_both_addresses_of_a_pod_are_taken(tmp_path):
    attachments = Attachments(tmp_path)
    attachments.put(FIRST)
    assert attachments.taken() == {"10.244.0.2", "fd00::2"}


def test_a_file_that_was_cut_off_is_as_if_it_never_was(tmp_path):
    Attachments(tmp_path).put(FIRST)
    for content in ("", "{", "[]", '{"container": "x"}'):
        (tmp_path / "x-eth0.json").write_text(content)
        assert Attachments(tmp_path).all() == [FIRST]
        assert not (tmp_path / "x-eth0.json").exists()


def test_what_is_already_gone_is_removed_without_a_word(tmp_path):
    Attachments(tmp_path).remove(FIRST)
