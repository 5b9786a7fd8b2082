import pytest

from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.node_flags import image_credentials
from sampan.cmd.settings import NodeChoices

PROVIDERS = """
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: {name}
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.example"]
  defaultCacheDuration: 10m
"""


def test_without_flags_there_are_only_the_usual_files(tmp_path):
    found = image_credentials(NodeChoices(), tmp_path, {"HOME": f"{tmp_path}/home"})
    assert found.providers == ()
    assert found.files[:2] == (f"{tmp_path}/config.json", f"{tmp_path}/home/.docker/config.json")


def test_a_directory_of_configurations_is_read_in_order(tmp_path):
    configs = tmp_path / "configs"
    configs.mkdir()
    for name in ("b", "a"):
        (configs / f"{name}.yaml").write_text(PROVIDERS.format(name=name))
        (tmp_path / name).touch(0o755)
    (configs / "README").write_text("not this one")
    node = NodeChoices(
        credential_provider_config=str(configs), credential_provider_bin_dir=str(tmp_path)
    )
    assert [one.name for one in image_credentials(node, tmp_path, {}).providers] == ["a", "b"]


def test_what_cannot_be_used_stops_the_start(tmp_path):
    config = tmp_path / "config.yaml"
    for text in (PROVIDERS.format(name="gone"), "{", "[1]", ""):
        config.write_text(text)
        node = NodeChoices(
            credential_provider_config=str(config), credential_provider_bin_dir=str(tmp_path)
        )
        with pytest.raises(CannotStart, match=str(config)):
            image_credentials(node, tmp_path, {})
    with pytest.raises(CannotStart, match="belong together"):
        image_credentials(NodeChoices(credential_provider_config=str(config)), tmp_path, {})
