"""Static tokens. [A1]"""

import pytest

from sampan.apiserver.authn.token_file import BadTokenFile, TokenFile
from sampan.apiserver.authn.user import User


def test_a_line_is_a_token_with_its_user_uid_and_groups():
    file = TokenFile('# tokens\nt1,alice,1,"dev,ops"\nt2,bob,2\n\n')
    assert file.user("t1") == User("alice", ("dev", "ops"), "1")
    assert file.user("t2") == User("bob", (), "2")
    assert file.user("t") is None
    assert file.user("") is None


@pytest.mark.parametrize("text", ["one", "a,b", ",user,1", "token,,1"])
def test_a_line_that_means_nothing_is_refused(text):
    with pytest.raises(BadTokenFile, match="line 1"):
        TokenFile(text)
