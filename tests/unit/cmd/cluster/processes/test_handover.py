"""What a parent tells its processes, and hears from them."""

import os

import pytest

from sampan.cmd.cluster.processes.handover import (
    READY,
    Answer,
    Handover,
    PartPlace,
    place_in,
    received,
)


def test_words_arrive_as_they_were_sent():
    reading, writing = os.pipe()
    words = Handover("simulated", {"scheduler": "s3cret"})
    words.send(writing)
    assert received(reading) == words
    os.close(writing)
    with pytest.raises(EOFError):
        received(reading)
    os.close(reading)


def test_words_to_one_who_has_ended_are_no_failure():
    reading, writing = os.pipe()
    os.close(reading)
    Handover("none", {}).send(writing)
    os.close(writing)


def test_a_place_is_handed_over_in_a_word_and_inherited_no_further():
    reading, writing = os.pipe()
    lock = os.open("/dev/null", os.O_RDONLY)
    place = PartPlace("nodes", reading, writing, lock)
    for descriptor in (reading, writing, lock):
        os.set_inheritable(descriptor, True)
    assert place_in(place.word.partition("=")[2]) == place
    assert not any(os.get_inheritable(each) for each in (reading, writing, lock))
    for descriptor in (reading, writing, lock):
        os.close(descriptor)


def test_an_answer_is_given_once_and_on_one_line():
    reading, writing = os.pipe()
    answer = Answer(writing)
    answer.give("it cannot\nbe")
    answer.give(READY)
    assert os.read(reading, 100) == b"it cannot be\n"
    assert os.read(reading, 100) == b""
    os.close(reading)
