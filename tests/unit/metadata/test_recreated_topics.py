"""What a plan takes back where a remote topic is the copy of another source topic than there is now."""

from __future__ import annotations

from mirrorless.clusters.acls import Acl
from mirrorless.metadata.actions import AddAcl, AlterConfigs, CreateTopic, ForgetAcl, GrowTopic, Plan, RemoveAcl
from mirrorless.metadata.recreated_topics import UNCHECKED, CreatedAgain, without_other_copies

REMOTE = {"t": "A.t", "u": "A.u"}


def acl(topic: str, pattern: str = "LITERAL") -> Acl:
    return Acl(topic=topic, pattern=pattern, principal="User:x", host="*", operation="READ", permission="ALLOW")


def changes(topic: str) -> tuple[GrowTopic | AlterConfigs | AddAcl | RemoveAcl, ...]:
    return (
        GrowTopic(topic=topic, partitions=2, reason="r"),
        AlterConfigs(topic=topic, differences=(), reason="r"),
        AddAcl(acl=acl(topic), reason="r"),
        RemoveAcl(acl=acl(topic), reason="r"),
    )


def test_only_the_topics_that_were_created_again_are_left_alone() -> None:
    others = (
        *changes("A.u"),
        CreateTopic(topic="A.t", partitions=1, replication_factor=1, reason="it is not there"),
        AddAcl(acl=acl("A.t", "PREFIXED"), reason="r"),
        ForgetAcl(acl=acl("A.t"), reason="r"),
    )
    plan = Plan(actions=(*changes("A.t"), *others), notes=("before",))
    found = without_other_copies(plan, CreatedAgain(topics={"t": "t is another topic"}), flow="A->B", remote=REMOTE)
    assert found.actions == others
    before, note = found.notes
    assert before == "before"
    assert note.startswith("t is another topic: nothing of the new topic is copied, and A.t stays as it is (configs, ")
    assert "`mirrorless offsets reset FILE --flow 'A->B' --topic t` copies the new topic" in note


def test_where_that_may_not_be_known_everything_is_changed_and_a_note_says_so() -> None:
    plan = Plan(actions=changes("A.t"))
    found = without_other_copies(plan, CreatedAgain(unknown="grant READ on it"), flow="A->B", remote=REMOTE)
    assert found.actions == plan.actions
    assert found.notes == (f"{UNCHECKED}: grant READ on it",)
