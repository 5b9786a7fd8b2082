"""Directories are removed however deep they are, and nothing that they only point to."""

import os

import pytest

from sampan.core.files.remove_tree import remove_tree


def dig(directory, levels):
    """Deeper than any path can name and than any stack can follow."""
    here = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_tree_goes_however_deep(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    dig(tree, 3000)
    (tree / "other").mkdir()
    (tree / "other" / "file").write_text("x")
    remove_tree(tree)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(kept)
    remove_tree(tree)
    link = tmp_path / "link"
    link.symlink_to(kept)
    with pytest.raises(OSError, match="link"):
        remove_tree(link)
    assert (kept / "file").read_text() == "x"


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "no")
