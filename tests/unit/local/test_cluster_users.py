"""Users of embedded clusters: names and passwords that need no quoting, and none that takes the brokers' own."""

from __future__ import annotations

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.local.broker import secured_settings
from mirrorless.local.embedded_kafka import ClusterSpec


@pytest.mark.parametrize("users", [{"broker": "x"}, {"a b": "x"}, {"a": 'x"'}, {"": "x"}, {"a": ""}])
def test_users_that_are_refused(users: dict[str, str]) -> None:
    reason = "use letters, digits, '_' and '-' in name and password; broker is taken"
    with pytest.raises(ConfigurationError, match=reason):
        ClusterSpec(name="c", users=users)


def test_passwords_are_not_shown() -> None:
    assert "swordfish" not in repr(ClusterSpec(name="c", users={"admin": "swordfish"}))


def test_only_super_users_may_do_without_acls() -> None:
    settings = secured_settings({"broker": "b", "admin": "a", "other": "o"}, super_users=["admin"])

    assert settings["super.users"] == "User:broker;User:admin"
    assert settings["allow.everyone.if.no.acl.found"] == "false"
