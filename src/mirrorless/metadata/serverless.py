"""Topics on MSK Serverless: which configs of their source topics they get, and a note on the others. No I/O.

MSK Serverless refuses all other configs ("Configuration properties for MSK Serverless clusters" in the MSK developer
guide), so each sync run would fail at the same topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.clusters.msk import accepts, is_serverless
from mirrorless.filters import config_filter_for
from mirrorless.metadata.config_plan import creation_config, plan_configs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.configs import Configs
    from mirrorless.filters import ConfigFilter
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True)
class ServerlessConfigs:
    """The configs that a flow's filter selects and that MSK Serverless accepts, when a topic is created or later."""

    chosen: ConfigFilter
    on_creation: bool

    def selects(self, name: str) -> bool:
        """Whether the config of this name is replicated."""
        return accepts(name, on_creation=self.on_creation) and self.chosen.selects(name)

    def selects_default(self, name: str) -> bool:
        """Whether a config at its default on the source is set on the target."""
        return self.chosen.selects_default(name)


def target_filter(flow: Flow, *, on_creation: bool) -> ConfigFilter:
    """Return the filter of a flow, without configs that its target never accepts."""
    chosen = config_filter_for(flow)
    return ServerlessConfigs(chosen, on_creation) if is_serverless(flow.target) else chosen


def not_created_with(flow: Flow, source: Mapping[str, Configs]) -> list[str]:
    """Return a note on configs of new topics that are not set, empty if there are none."""
    if not is_serverless(flow.target):
        return []
    plain, chosen = config_filter_for(flow), target_filter(flow, on_creation=True)
    return _note(
        flow,
        (
            (topic, name)
            for topic, configs in source.items()
            for name in creation_config(plain, configs).keys() - creation_config(chosen, configs).keys()
        ),
    )


def not_synced(
    flow: Flow, *, remote: Mapping[str, str], source: Mapping[str, Configs], target: Mapping[str, Configs]
) -> list[str]:
    """Return a note on configs of existing topics that differ and are not set, empty if there are none."""
    if not is_serverless(flow.target):
        return []
    actions, _ = plan_configs(config_filter_for(flow), remote=remote, source=source, target=target)
    refused = ((action.topic, one.name) for action in actions for one in action.differences)
    return _note(flow, ((topic, name) for topic, name in refused if not accepts(name, on_creation=False)))


def _note(flow: Flow, left: Iterable[tuple[str, str]]) -> list[str]:
    pairs = sorted(left)
    if not pairs:
        return []
    topics, names = dict.fromkeys(topic for topic, _ in pairs), sorted({name for _, name in pairs})
    many = f"{len(topics)} topic{'' if len(topics) == 1 else 's'}, among them {next(iter(topics))}"
    late = "; cleanup.policy can be set only when a topic is created" if "cleanup.policy" in names else ""
    return [f"{flow.target.alias} is MSK Serverless, which does not let {', '.join(names)} be set ({many}){late}"]
