from sampan.kubelet.contracts.runtime import Mount
from sampan.kubelet.native.bundles import make_sources


def test_a_path_of_the_node_that_is_not_there_is_made_as_a_directory(tmp_path):
    """[N15] hostPath without a type"""
    (tmp_path / "file").write_text("kept")
    (tmp_path / "broken").symlink_to("nowhere")
    names = ("file", "broken", "new/below")
    make_sources(
        [Mount("/m", str(tmp_path / name)) for name in names] + [Mount("/i", "", image="i")]
    )
    assert (tmp_path / "file").read_text() == "kept"
    assert (tmp_path / "broken").is_symlink()
    assert (tmp_path / "new" / "below").is_dir()
