"""A Kafka cluster of a configuration, and what all models of a configuration have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from mirrorless.settings.masking import MaskedMapping
from mirrorless.settings.values import ClientSettings, Text


class Frozen(BaseModel):
    """A part of a configuration: it does not change, and has no field that is not declared."""

    # A value that pydantic refuses may be a secret: it stays out of the error's text.
    # The text under a field is its meaning, for `mirrorless config explain` and docs/configuration.md.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


class Cluster(Frozen):
    """One Kafka cluster under its alias.

    `cluster_id` is the operator's name of the cluster in place of the id that it reports. `client` has the Java client
    settings without the alias; `consumer.`, `producer.` and `admin.` prefixes stay and take precedence in that role.
    Neither repr nor `model_dump` shows its secrets; pickle keeps them.
    """

    alias: Text
    bootstrap_servers: Text
    cluster_id: Text | None = None
    client: ClientSettings = Field(default_factory=lambda: MaskedMapping({}))
