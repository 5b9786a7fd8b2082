from sampan.testing.kit.manifests import documents

TWO = "kind: A\n---\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n"


def kinds(manifest):
    return [obj["kind"] for obj in documents(manifest)]


def test_whatever_a_test_has_at_hand_is_a_manifest(tmp_path):
    (tmp_path / "one.yaml").write_text(TWO)
    (tmp_path / "two.json").write_text('{"kind": "D"}')
    (tmp_path / "readme.txt").write_text("kind: Z")
    assert kinds(TWO) == ["A", "B", "C"]
    assert kinds({"kind": "A"}) == ["A"]
    assert kinds([{"kind": "A"}, {"kind": "B"}]) == ["A", "B"]
    assert kinds(tmp_path / "one.yaml") == ["A", "B", "C"]
    assert kinds(tmp_path) == ["A", "B", "C", "D"]
