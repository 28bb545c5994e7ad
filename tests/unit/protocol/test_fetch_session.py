"""A session names what changed, and everything again wherever the leader may know another state of it."""

from __future__ import annotations

from uuid import UUID

from mirrorless.protocol.fetch_session import Asked, FetchSession

A, B, C = ("t", 0), ("t", 1), ("u", 0)
IDS = {"t": UUID(int=1), "u": UUID(int=2)}


def opened(*positions: tuple[tuple[str, int], int, int], session_id: int = 7) -> FetchSession:
    session = FetchSession()
    session.ask(positions, IDS)
    session.answered(session_id, version=13)
    return session


def told(asked: Asked) -> tuple[int, int, list[tuple[str, int]], set[tuple[str, int]]]:
    return asked.session_id, asked.epoch, [place for place, *_ in asked.positions], set(asked.forgotten)


def test_the_first_request_names_everything() -> None:
    asked = FetchSession().ask([(A, 5, -1), (B, 6, 2)], IDS)
    assert asked == Asked([(A, 5, -1), (B, 6, 2)], IDS, 0, 0, ())
    assert not asked.names_changes


def test_what_changed_is_named_and_what_is_not_wanted_is_forgotten() -> None:
    session = opened((A, 5, -1), (B, 6, 2))
    asked = session.ask([(A, 5, -1), (B, 9, 2), (C, 0, -1)], IDS)
    assert told(asked) == (7, 1, [B, C], set())
    assert asked.names_changes
    session.answered(7, version=13)
    assert told(session.ask([(A, 5, -1), (B, 9, 3)], IDS)) == (7, 2, [B], {C})
    session.answered(7, version=13)
    assert told(session.ask([(A, 5, -1), (B, 9, 3)], IDS)) == (7, 3, [], set())


def test_after_the_greatest_epoch_comes_the_first_that_names_changes() -> None:
    session = opened((A, 5, -1))
    session._next_epoch = (1 << 31) - 1
    session.ask([(A, 5, -1)], IDS)
    session.answered(7, version=13)
    assert session.ask([(A, 5, -1)], IDS).epoch == 1


def test_a_request_without_an_answer_is_followed_by_one_that_replaces_the_session() -> None:
    session = opened((A, 5, -1))
    session.ask([(A, 6, -1)], IDS)
    assert told(session.ask([(A, 6, -1)], IDS)) == (7, 0, [A], set())
    session.answered(8, version=13)
    assert told(session.ask([(A, 6, -1)], IDS)) == (8, 1, [], set())


def test_a_leader_that_remembers_no_session_is_asked_for_everything_again() -> None:
    session = opened((A, 5, -1), session_id=0)
    assert told(session.ask([(A, 5, -1)], IDS)) == (0, 0, [A], set())
    session.answered(7, version=13)
    session.ask([(A, 5, -1)], IDS)
    session.answered(0, version=13)
    assert told(session.ask([(A, 5, -1)], IDS)) == (0, 0, [A], set())
    session.answered(-1, version=13)  # its quota is used up
    assert told(session.ask([(A, 5, -1)], IDS)) == (0, 0, [A], set())


def test_a_topic_that_was_created_again_is_another_one() -> None:
    session = opened((A, 5, -1))
    assert session.ask([(A, 5, -1)], IDS | {"t": UUID(int=3)}).epoch == 0


def test_a_session_is_by_id_or_by_name() -> None:
    session = opened((A, 5, -1))
    asked = session.ask([(A, 5, -1)], None)
    assert (asked.ids, asked.epoch) == (None, 0)


def test_a_forgotten_topic_keeps_its_id_to_be_forgotten_by() -> None:
    session = opened((A, 5, -1), (C, 1, -1))
    asked = session.ask([(A, 5, -1)], {"t": IDS["t"]})
    assert set(asked.forgotten) == {C}
    assert asked.ids == IDS


def test_a_copy_that_was_resumed_is_told_of_whatever_is_new() -> None:
    session = opened((A, 5, -1), (B, 6, -1))
    session.renew(C)
    assert session.ask([(A, 5, -1), (B, 6, -1)], IDS).epoch == 1
    session.renew(A)  # while the answer is on its way
    session.answered(7, version=13)
    assert told(session.ask([(A, 5, -1), (B, 6, -1)], IDS)) == (7, 0, [A, B], set())
    session.answered(8, version=13)
    assert session.ask([(A, 5, -1), (B, 6, -1)], IDS).epoch == 1


def test_with_a_leader_whose_sessions_are_not_fair_there_is_none() -> None:
    session = FetchSession()
    session.ask([(A, 5, -1)], None)
    session.answered(7, version=12)
    assert told(session.ask([(A, 5, -1)], None)) == (7, -1, [A], set())  # which closes what it began
    session.answered(0, version=12)
    assert told(session.ask([(A, 5, -1)], None)) == (0, -1, [A], set())
    assert session.close() is None


def test_only_a_session_that_is_known_is_closed() -> None:
    assert FetchSession().close() is None
    session = opened((A, 5, -1))
    assert session.close() == Asked((), None, 7, -1)
    session.ask([(A, 5, -1)], IDS)
    assert session.close() is None  # who gave no answer may be gone
