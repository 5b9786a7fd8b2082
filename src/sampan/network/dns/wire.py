"""DNS messages as bytes (RFC 1035, EDNS of RFC 6891).

Job: read a question, write an answer, read what a name server answered. Pure.
Invariant: a message is read in time in proportion to its length, whatever pointers its names have:
    each leads further to the front, and where it leads is read once.
Invariant: an answer that does not fit is cut at a whole record, and says so.
"""

import socket
import struct
from collections.abc import Iterable, Sequence

from sampan.core.fast_dataclass import dataclass

A, NS, CNAME, SOA, PTR, TXT, AAAA, SRV, OPT, ANY = 1, 2, 5, 6, 12, 16, 28, 33, 41, 255
TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 16: "TXT", 28: "AAAA", 33: "SRV"}
IN = 1
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = 0, 1, 2, 3, 4, 5
BADVERS = 16
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED",
          16: "BADVERS"}  # fmt: skip
SMALLEST_UDP, LARGEST_UDP = 512, 1232
LARGEST_QUESTION = 1232  # with all that EDNS may add to a name

HEADER = struct.Struct(">HHHHHH")
_RECORD = struct.Struct(">HHIH")  # type, class, time to live, length
_ANSWER, _AUTHORITATIVE, _TRUNCATED, _RECURSION_WANTED, _RECURSION = (
    0x8000, 0x0400, 0x0200, 0x0100, 0x0080,
)  # fmt: skip
_OPCODE = 0x7800
_POINTER = 0xC0
_MOST_NAME_BYTES = 255
# As CoreDNS: of a question's other sections.
_MOST_ANSWERS, _MOST_AUTHORITIES, _MOST_ADDITIONAL = 1, 1, 2
_MOST_RECORDS = 4096  # of an answer


class BadMessage(Exception):
    """These bytes are no question that can be answered."""


@dataclass(frozen=True, slots=True)
class Question:
    id: int
    name: str  # lower case, without the last dot; as it was asked: `raw`
    type: int
    cls: int
    raw: bytes  # the question section
    recursion_wanted: bool = True
    opcode: int = 0
    udp_size: int = SMALLEST_UDP
    edns: bool = False
    edns_version: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    type: int
    ttl: int
    data: object  # str for A, AAAA, CNAME, NS, PTR, TXT; a tuple for SRV and SOA


@dataclass(frozen=True, slots=True)
class Answer:
    rcode: int = NOERROR
    answers: tuple[Record, ...] = ()
    authority: tuple[Record, ...] = ()
    additional: tuple[Record, ...] = ()
    authoritative: bool = True


def read_question(message: bytes) -> Question:
    if not HEADER.size <= len(message) <= LARGEST_QUESTION:
        raise BadMessage("shorter than a header, or longer than a question")
    number, flags, questions, answers, authorities, additional = HEADER.unpack_from(message)
    if flags & _ANSWER or questions != 1:
        raise BadMessage("not one question")
    if answers > _MOST_ANSWERS or authorities > _MOST_AUTHORITIES or additional > _MOST_ADDITIONAL:
        raise BadMessage("more than a question")
    name, at = _question_name(message)
    if at + 4 > len(message):
        raise BadMessage("the question ends early")
    kind, cls = struct.unpack_from(">HH", message, at)
    raw = message[HEADER.size : at + 4]
    more = answers + authorities + additional
    size, edns, version = _edns(message, at + 4, more) if more else (SMALLEST_UDP, False, 0)
    return Question(
        number, name.lower(), kind, cls, raw, bool(flags & _RECURSION_WANTED),
        (flags & _OPCODE) >> 11, size, edns, version,
    )  # fmt: skip


def _edns(message: bytes, at: int, records: int) -> tuple[int, bool, int]:
    """How much the asker takes in one datagram, whether it said so, and in which version."""
    for _ in range(records):
        at = _after_name(message, at)
        if at + _RECORD.size > len(message):
            break
        kind, size, ttl, length = _RECORD.unpack_from(message, at)
        if kind == OPT:
            return min(max(size, SMALLEST_UDP), LARGEST_UDP), True, (ttl >> 16) & 0xFF
        at += _RECORD.size + length
    return SMALLEST_UDP, False, 0


def plain_length(message: bytes) -> int:
    """Of a question without anything behind it; 0 where it is none."""
    try:
        return _after_name(message, HEADER.size) + 4
    except BadMessage:
        return 0


def _after_name(message: bytes, at: int) -> int:
    """Where what follows a name starts; it is not read."""
    end = at + _MOST_NAME_BYTES
    while at < min(end, len(message)):
        length = message[at]
        if length & _POINTER == _POINTER:
            return at + 2
        if length & _POINTER:
            break
        at += 1 + length
        if length == 0:
            return at
    raise BadMessage("a name ends early, or never")


def _question_name(message: bytes) -> tuple[str, int]:
    """The name without its last dot, and where what follows it starts. There is nothing yet that it
    could point to."""
    labels: list[str] = []
    at, end = HEADER.size, HEADER.size + _MOST_NAME_BYTES
    while True:
        if at >= min(end, len(message)):
            raise BadMessage("a name ends early, or never")
        length = message[at]
        if length == 0:
            return ".".join(labels), at + 1
        if length & _POINTER:
            raise BadMessage("a label is too long, or a name points forward")
        if at + 1 + length > len(message):
            raise BadMessage("a name ends early")
        labels.append(message[at + 1 : at + 1 + length].decode("latin-1"))
        at += 1 + length


def write_answer(question: Question, answer: Answer, limit: int = 0) -> bytes:
    """`limit` 0: as long as it must be (TCP)."""
    writer = _Writer(question)
    sections = (answer.answers, answer.authority, answer.additional)
    tail = opt(answer.rcode) if question.edns else b""
    room = (limit or 65535) - len(tail)
    counts, truncated = [0, 0, 0], False
    for number, records in enumerate(sections):
        for record in records:
            if truncated or not writer.add(record, room):
                # What is only helpful may be missing without a word.
                truncated = truncated or number < 2
                break
            counts[number] += 1
    flags = _ANSWER | _RECURSION | (question.opcode << 11) | (answer.rcode & 0xF)
    flags |= _AUTHORITATIVE if answer.authoritative else 0
    flags |= _TRUNCATED if truncated else 0
    flags |= _RECURSION_WANTED if question.recursion_wanted else 0
    counts[2] += bool(tail)
    return HEADER.pack(question.id, flags, 1, *counts) + bytes(writer.body) + tail


def opt(rcode: int = NOERROR) -> bytes:
    return b"\0" + _RECORD.pack(OPT, LARGEST_UDP, (rcode >> 4) << 24, 0)


class _Writer:
    """The sections behind the header; names that were written are pointed to."""

    def __init__(self, question: Question) -> None:
        self.body = bytearray(question.raw)
        self._places: dict[str, int] = {}
        self._remember(question.name, HEADER.size)

    def add(self, record: Record, room: int) -> bool:
        start, places = len(self.body), dict(self._places)
        self._name(record.name)
        head = len(self.body)
        self.body += _RECORD.pack(record.type, IN, record.ttl, 0)
        self._data(record)
        length = len(self.body) - head - _RECORD.size
        struct.pack_into(">H", self.body, head + 8, length)
        if HEADER.size + len(self.body) > room:
            del self.body[start:]
            self._places = places
            return False
        return True

    def _data(self, record: Record) -> None:
        data = record.data
        match record.type:
            case 1:
                self.body += socket.inet_pton(socket.AF_INET, str(data))
            case 28:
                self.body += socket.inet_pton(socket.AF_INET6, str(data))
            case 2 | 5 | 12:
                self._name(str(data))
            case 33:
                assert isinstance(data, tuple)
                priority, weight, port, target = data
                self.body += struct.pack(">HHH", priority, weight, port)
                self.body += plain_name(target)  # RFC 2782: not compressed
            case 6:
                assert isinstance(data, tuple)
                server, mailbox, *numbers = data
                self._name(server)
                self._name(mailbox)
                self.body += struct.pack(">IIIII", *numbers)
            case 16:
                text = str(data).encode()
                self.body += bytes([len(text)]) + text
            case _:
                raise AssertionError(record)

    def _name(self, name: str) -> None:
        rest = name
        while rest:
            place = self._places.get(rest)
            if place is not None:
                self.body += struct.pack(">H", 0xC000 | place)
                return
            at = HEADER.size + len(self.body)
            if at < 0x4000:
                self._places[rest] = at
            label, _, rest = rest.partition(".")
            raw = label.encode("latin-1")
            self.body += bytes([len(raw)]) + raw
        self.body += b"\0"

    def _remember(self, name: str, at: int) -> None:
        while name:
            self._places[name] = at
            label, _, name = name.partition(".")
            at += 1 + len(label)


def plain_name(name: str) -> bytes:
    labels = [label.encode("latin-1") for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def write_question(number: int, name: str, kind: int) -> bytes:
    head = HEADER.pack(number, _RECURSION_WANTED, 1, 0, 0, 1)
    return head + plain_name(name) + struct.pack(">HH", kind, IN) + opt()


@dataclass(frozen=True, slots=True)
class Reply:
    """What another name server answered."""

    id: int
    rcode: int
    truncated: bool
    question: bytes
    records: tuple[Record, ...]  # of the answer section: A, AAAA, CNAME
    ttl: int  # how long all of it holds
    ttl_places: tuple[int, ...]  # where in the message the times to live are
    opt_at: int = 0  # where its EDNS record starts, if that comes last
    has_answers: bool = False  # of any type


def read_reply(message: bytes) -> Reply:
    if len(message) < HEADER.size:
        raise BadMessage("shorter than a header")
    number, flags, questions, *counts = HEADER.unpack_from(message)
    if not flags & _ANSWER or questions > 1:
        raise BadMessage("not an answer")
    at = HEADER.size
    if questions:
        at = _after_name(message, at) + 4
    question = message[HEADER.size : at]
    records: list[Record] = []
    ttls: list[int] = []
    places: list[int] = []
    opt_at = 0
    if sum(counts) > _MOST_RECORDS:
        raise BadMessage("too many records")
    names = _Names(message)
    for section, count in enumerate(counts):
        for _ in range(count):
            start, at = at, _after_name(message, at)
            if at + _RECORD.size > len(message):
                raise BadMessage("a record ends early")
            kind, _, ttl, length = _RECORD.unpack_from(message, at)
            opt_at = start if kind == OPT else 0
            body = at + _RECORD.size
            if body + length > len(message):
                raise BadMessage("a record ends early")
            if kind != OPT:
                places.append(at + 4)
                ttls.append(_negative_ttl(message, kind, ttl, body, length))
            if section == 0 and (data := names.value(kind, body, length)) is not None:
                records.append(Record(names.at(start), kind, ttl, data))
            at = body + length
    truncated = bool(flags & _TRUNCATED)
    shortest = min(ttls, default=0)
    found, where = tuple(records), tuple(places)
    return Reply(
        number, flags & 0xF, truncated, question, found, shortest, where, opt_at, counts[0] > 0
    )


def without_opt(message: bytes, reply: Reply) -> bytes:
    """EDNS is between two neighbours: what one said is not for the next."""
    if not reply.opt_at:
        return message
    shorter = bytearray(message[: reply.opt_at])
    struct.pack_into(">H", shorter, 10, struct.unpack_from(">H", shorter, 10)[0] - 1)
    return bytes(shorter)


def _negative_ttl(message: bytes, kind: int, ttl: int, body: int, length: int) -> int:
    """RFC 2308: what is not there holds for as long as the zone says in its SOA."""
    if kind == SOA and length >= 4:
        return min(ttl, int(struct.unpack_from(">I", message, body + length - 4)[0]))
    return ttl


class _Names:
    """Of one message: each label of it is read once, however many names end with it."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._known: dict[int, str] = {}  # by where it starts

    def at(self, place: int) -> str:
        """Without its last dot."""
        steps: list[tuple[int, str]] = []  # a label, or none where it goes on elsewhere
        message, limit = self._message, place
        while (known := self._known.get(place)) is None:
            length = message[place] if place < len(message) else 0xFF
            if length == 0:
                known = ""
                break
            points = length & _POINTER == _POINTER
            if place + (2 if points else 1 + length) > len(message):
                raise BadMessage("a name ends early")
            if points:
                steps.append((place, ""))
                place = struct.unpack_from(">H", message, place)[0] & 0x3FFF
                if place >= limit:
                    raise BadMessage("a name points forward")
                limit = place
            elif length & _POINTER:
                raise BadMessage("a label is too long")
            else:
                steps.append((place, message[place + 1 : place + 1 + length].decode("latin-1")))
                place += 1 + length
        for place, label in reversed(steps):
            known = (f"{label}.{known}" if known else label) if label else known
            if len(known) > _MOST_NAME_BYTES - 2:
                raise BadMessage("a name is too long")
            self._known[place] = known
        return known

    def value(self, kind: int, body: int, length: int) -> str | None:
        """Of the types that are looked into."""
        if kind == A and length == 4:
            return socket.inet_ntop(socket.AF_INET, self._message[body : body + 4])
        if kind == AAAA and length == 16:
            return socket.inet_ntop(socket.AF_INET6, self._message[body : body + 16])
        return self.at(body) if kind == CNAME else None


def aged(message: bytes, places: Iterable[int], seconds: int) -> bytes:
    """The same message `seconds` later."""
    older = bytearray(message)
    for place in places:
        left = max(struct.unpack_from(">I", older, place)[0] - seconds, 0)
        struct.pack_into(">I", older, place, left)
    return bytes(older)


def rcode_name(rcode: int) -> str:
    return RCODES.get(rcode, str(rcode))


def types_of(records: Sequence[Record]) -> set[int]:
    return {record.type for record in records}
