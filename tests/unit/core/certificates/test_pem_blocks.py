from hypothesis import given
from hypothesis import strategies as st

from sampan.core.certificates.pem_blocks import PemBlock, pem_blocks, pem_text


@given(st.lists(st.binary(max_size=200)), st.text("ab \n", max_size=9))
def test_what_is_written_is_found_between_whatever_else_there_is(contents, noise):
    text = f"{noise}\n" + "".join(f"{pem_text(data)}{noise}\n" for data in contents)
    found = [*pem_blocks(f"\n{text}".encode())]
    assert found == [PemBlock("CERTIFICATE", {}, data) for data in contents]


def test_headers_are_told():
    text = pem_text(b"key", "X").replace("X-----\n", "X-----\nA: b: c\n\n", 1)
    assert [*pem_blocks(text.encode())] == [PemBlock("X", {"A": "b: c"}, b"key")]


def test_a_damaged_block_hides_no_other():
    good = pem_text(b"good")
    for damaged in (
        "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END OTHER-----\n",
        "-----BEGIN CERTIFICATE\nAAAA\n",
    ):
        assert [one.data for one in pem_blocks((damaged + good).encode())][-1] == b"good"
