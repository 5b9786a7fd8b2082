import pytest

from sampan.store.etcd import CannotConnect, check_version
from sampan.store.etcd_url import EtcdAddress


@pytest.mark.parametrize("version", ["3.4.0", "3.5.21", "3.10.0", "4.0.0", "3.4.23+git"])
def test_new_enough_etcds_are_taken(version):
    check_version(EtcdAddress(("a:1",)), version)


@pytest.mark.parametrize("version", ["2.3.8", "3.3.27", ""])
def test_an_old_etcd_is_refused_in_one_sentence(version):
    with pytest.raises(CannotConnect, match=f"etcd at a:1 is version {version}: 3.4 or newer"):
        check_version(EtcdAddress(("a:1",)), version)
