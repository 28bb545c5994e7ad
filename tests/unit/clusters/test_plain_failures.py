"""A broker that was once seen to speak no TLS is said to speak none, whatever librdkafka says of it next."""

from __future__ import annotations

import pytest

from mirrorless.clusters.connection_errors import Plainly

PLAIN = "a:9092: the broker does not use TLS on this port; correct security.protocol or the port"
CLOSED = (
    "ssl://a:9092/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer (after 3ms in state X)"
)


def plainly() -> Plainly:
    return Plainly(trust=None, check_hostname=True, username=None, has_key=False)


@pytest.mark.parametrize("said", ["SSL connection closed by peer: ", ""])
def test_every_guess_of_the_library_is_told_in_plain_words(said: str) -> None:
    text = (
        f"ssl://a:9092/bootstrap: SSL handshake failed: Disconnected: {said}connecting to a PLAINTEXT broker listener?"
    )
    assert plainly().say(text) == PLAIN


def test_what_comes_after_a_guess_is_the_same_thing() -> None:
    mouth = plainly()
    assert mouth.say(CLOSED) == "a:9092: SSL handshake failed: Disconnected: SSL connection closed by peer"
    mouth.say("ssl://a:9092/1: Disconnected: connecting to a PLAINTEXT broker listener?")
    assert mouth.say(CLOSED) == PLAIN
    assert mouth.say(CLOSED.replace("a:9092", "b:9092")) != PLAIN


def test_a_wrong_port_is_said_once() -> None:
    said = "a:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
    assert plainly().say(said) == "a:9092: Connection refused; check the address, and that the broker is up"
