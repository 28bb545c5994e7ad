"""Secrets are known by their names, behind any prefix, and a masked mapping still is the mapping it masks."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mirrorless.settings import Cluster
from mirrorless.settings.masking import MASK, MaskedMapping, is_secret, shown


@pytest.mark.parametrize(
    "key",
    [
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "ssl.keystore.key",
        "sasl.jaas.config",
        "consumer.sasl.jaas.config",
        "A->B.source.admin.ssl.key.password",
        "listener.name.x.ssl.keystore.key",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "A.SSL.Key.Password",
        "ssl_key_password",
        "A.consumer.sasl.jaas.confg",
        "sasl-jaas-config",
        "A->B.source.cluster.ssl.keystore.pasword",
    ],
)
def test_secret(key: str) -> None:
    assert is_secret(key)


def test_a_login_configuration_is_masked_under_any_name() -> None:
    assert shown("jaas", 'x.PlainLoginModule required username="a" password="swordfish";') == MASK
    assert shown("odd", "password = swordfish") == MASK


@pytest.mark.parametrize("key", ["client.id", "ssl.keystore.location", "sasl.mechanism", "key.converter", "topics"])
def test_no_secret(key: str) -> None:
    assert not is_secret(key)


@given(st.dictionaries(st.text(), st.text()))
def test_a_masked_mapping_equals_copies_and_travels_as_the_plain_one(settings: dict[str, str]) -> None:
    masked = MaskedMapping(settings)

    assert masked == settings
    assert hash(masked) == hash(MaskedMapping(dict(reversed(settings.items()))))
    assert pickle.loads(pickle.dumps(masked)) == masked  # noqa: S301 - our own bytes
    assert copy.deepcopy(masked) == masked


def test_what_a_cluster_refuses_is_not_shown() -> None:
    with pytest.raises(ValidationError) as caught:
        Cluster.model_validate(
            {"alias": "A", "bootstrap_servers": "a:1", "client": {"x": 1}, "ssl_password": "swordfish"}
        )

    assert "swordfish" not in str(caught.value)


def test_a_cluster_cannot_be_changed() -> None:
    cluster = Cluster(alias="A", bootstrap_servers="a:1", client={"client.id": "x"})

    assert isinstance(cluster.client, MaskedMapping)
    with pytest.raises(ValidationError):
        cluster.alias = "B"  # type: ignore[misc]
