from sampan.apiserver.authn.page_sessions import (
    MOST_CODES,
    MOST_OF_ONE,
    MOST_SESSIONS,
    Credential,
    PageSessions,
)
from tests.support.manual_clock import ManualClock


def credential(user):
    return Credential(None, f"Bearer {user}", 1e12, user)


def test_who_asks_for_many_sessions_loses_their_own():
    sessions = PageSessions(ManualClock())
    other = sessions.exchange(sessions.make_code(credential("other")))
    own = [
        sessions.exchange(sessions.make_code(credential("many"))).token
        for _ in range(MOST_SESSIONS + 10)
    ]
    assert sessions.credential(other.token) == credential("other")
    known = [token for token in own if sessions.credential(token) is not None]
    assert known == own[-MOST_OF_ONE:]


def test_who_asks_for_many_codes_loses_their_own():
    sessions = PageSessions(ManualClock())
    other = sessions.make_code(credential("other"))
    own = [sessions.make_code(credential("many")) for _ in range(MOST_CODES + 10)]
    assert sessions.exchange(other) is not None
    assert [code for code in own if sessions.exchange(code)] == own[-MOST_OF_ONE:]
