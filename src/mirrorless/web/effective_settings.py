"""Settings in effect as rows, by flow and by cluster, with secrets masked. No I/O."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mirrorless.settings.explain import client_explanations, explanations
from mirrorless.settings.load import understand
from mirrorless.settings.masking import MASK, shown
from mirrorless.settings.model import FLOW_KEYS, SOURCE_CLIENT_KEYS, WORKER_KEYS
from mirrorless.web.snapshot import SettingRow, SettingsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.settings import Cluster, Flow, Settings
    from mirrorless.settings.reader import Effective

_IN_URL: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?:[^/@\s,]+@)?(?P<rest>[^?\s,]*)(?P<query>\?[^\s,]*)?", re.I
)


def effective_settings(settings: Settings) -> tuple[SettingsOf, ...]:
    """Return the settings of each flow, then those of each cluster; reads the file again for where each is set."""
    understood = understand(settings.file)
    clients: dict[str, dict[str, str]] = {}
    for flow in settings.flows:
        for side, cluster in (("source", flow.source), ("target", flow.target)):
            clients.setdefault(cluster.alias, {}).update(_origins(understood.clients.get((flow.name, side), ())))
    meanings = {one.key: one.meaning for one in (*explanations(), *client_explanations())}
    return (
        *(
            SettingsOf(
                name=flow.name,
                kind="flow",
                settings=_of_flow(flow, meanings, _origins(understood.flows.get(flow.name, ()))),
            )
            for flow in settings.flows
        ),
        *(
            SettingsOf(name=one.alias, kind="cluster", settings=_of_cluster(one, meanings, clients.get(one.alias, {})))
            for one in settings.clusters
        ),
    )


def _origins(found: Iterable[Effective]) -> dict[str, str]:
    return {one.key: one.origin for one in found if one.origin != "default"}


def _of_flow(flow: Flow, meanings: Mapping[str, str], origins: Mapping[str, str]) -> tuple[SettingRow, ...]:
    keys = {**FLOW_KEYS, **WORKER_KEYS, **{f"<source>.{key}": field for key, field in SOURCE_CLIENT_KEYS.items()}}
    return tuple(
        SettingRow(
            key=key.replace("<source>", flow.source.alias),
            value=_masked(key, _text(getattr(flow, field))),
            is_default=flow.is_default(field),
            origin=origins.get(key.replace("<source>", flow.source.alias), ""),
            meaning=meanings.get(key, ""),
        )
        for key, field in sorted(keys.items())
    )


def _of_cluster(cluster: Cluster, meanings: Mapping[str, str], origins: Mapping[str, str]) -> tuple[SettingRow, ...]:
    values = {"bootstrap.servers": cluster.bootstrap_servers, **cluster.client}
    return tuple(
        SettingRow(
            key=key,
            value=_masked(key, value),
            is_default=False,
            origin=origins.get(key, ""),
            meaning=meanings.get(key, ""),
        )
        for key, value in sorted(values.items())
    )


def _masked(key: str, value: str) -> str:
    """Mask a secret, and the login and the query of an address."""
    return _IN_URL.sub(_without_secrets, shown(key, value))


def _without_secrets(found: re.Match[str]) -> str:
    login = f"{MASK}@" if "@" in found[0].partition("?")[0] else ""
    return f"{found['scheme']}{login}{found['rest']}{f'?{MASK}' if found['query'] else ''}"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list | frozenset):
        return ", ".join(map(_text, value))
    return str(value)
