"""The board for Grafana and the alerts for Prometheus, from the metrics; `make reference` writes them.

Expressions name metrics as `{record-count}`; a name that `metrics.py` does not have is a KeyError.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from mirrorless.metrics import BY_NAME, TOPIC, Unit
from mirrorless.publishing.prometheus import prometheus_name

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER: Final = Path(__file__).parents[2] / "monitoring"
_NAME: Final = re.compile(r"\{([a-z-]+)\}")
_UNITS: Final = {
    Unit.COUNT: "short",
    Unit.BYTES: "decbytes",
    Unit.MILLISECONDS: "ms",
    Unit.SECONDS: "s",
    Unit.COUNT_PER_SECOND: "cps",
    Unit.BYTES_PER_SECOND: "Bps",
}
_OF_FLOW: Final = "{{source}} → {{target}}"
_SELECTED: Final = 'source=~"$source",target=~"$target"'
# MirrorMaker 2's MBeans as the JMX exporter names them without rules: the names of KIP-1280, else the older ones.
_MM2_NEW: Final = "kafka_connect_plugins"
_MM2_OLD: Final = "kafka_connect_mirror_MirrorSourceConnector"


class Alert(NamedTuple):
    """An alert: its expression, how long it holds, how severe it is, and what to do."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    action: str


ALERTS: Final = (
    Alert(
        "MirrorlessPartitionsHalted",
        "{partitions-halted} > 0",
        "1m",
        "critical",
        "{{ $value }} partitions are halted",
        "`mirrorless status` or the live page has the partitions, the reasons and the commands that fix them.",
    ),
    Alert(
        "MirrorlessLag",
        "max by (source, target) ({lag-seconds}) > 300",
        "10m",
        "warning",
        "the copy lags by {{ $value }} s",
        "Look at lag by topic, at quotas (`fetch-throttle-time-ms`, `produce-throttle-time-ms`) and at both clusters.",
    ),
    Alert(
        "MirrorlessClusterUnavailable",
        "{partitions-unreachable} > 0",
        "5m",
        "critical",
        "{{ $value }} partitions are not copied, because a cluster does not answer",
        "The log of the copy names the cluster (`Trouble`).",
    ),
    Alert(
        "MirrorlessRecordsSkipped",
        "increase({gap-count}[15m]) + increase({left-out-count}[15m]) > 0",
        "0m",
        "warning",
        "gaps or records were skipped",
        "The log of the copy has each of them (`PassedOver`).",
    ),
    Alert(
        "MirrorlessOtherWriter",
        "increase({foreign-count}[15m]) > 0",
        "0m",
        "warning",
        "another producer writes to remote topics",
        "Find it by the log of the copy; only the copy may write to remote topics.",
    ),
    Alert(
        "MirrorlessHeartbeatMissing",
        "{heartbeat-age-seconds} > 120",
        "5m",
        "critical",
        "no heartbeat was replicated for {{ $value }} s",
        "Look at whether the copy runs, and whether both clusters answer.",
    ),
    Alert(
        "MirrorlessMetadataFailed",
        "{topics-failed} + {configs-failed} + {acls-failed} > 0",
        "30m",
        "warning",
        "topics, configs or ACLs could not be synchronized",
        "`mirrorless plan` shows what is missing; the log has the reasons.",
    ),
    Alert(
        "MirrorlessThrottled",
        "{fetch-throttle-time-ms} > 30000 or {produce-throttle-time-ms} > 30000",
        "15m",
        "warning",
        "quotas delay the copy by {{ $value }} ms in each lease",
        "Raise the quota of the copy's user or client id, or accept the lag.",
    ),
    Alert(
        "MirrorlessDown",
        'up{job="mirrorless"} == 0',
        "5m",
        "critical",
        "the process that copies cannot be scraped",
        "Look at whether `mirrorless run` runs. The scrape job has to be named mirrorless.",
    ),
)


def series(expression: str, labels: str = "") -> str:
    """Return an expression with the names of Prometheus, each with these labels."""

    def named(found: re.Match[str]) -> str:
        metric = BY_NAME[found[1]]
        return f"{prometheus_name(metric)}{'_total' if metric.counts else ''}{f'{{{labels}}}' if labels else ''}"

    return _NAME.sub(named, expression)


def alerts() -> str:
    """Return the rules of Prometheus."""
    rules = [
        {
            "alert": one.name,
            "expr": series(one.expression),
            "for": one.lasts,
            "labels": {"severity": one.severity},
            "annotations": {
                "summary": f"{{{{ $labels.source }}}}->{{{{ $labels.target }}}}: {one.summary}"
                if "job=" not in one.expression
                else one.summary,
                "description": one.action,
            },
        }
        for one in ALERTS
    ]
    head = (
        "# Generated from src/mirrorless/metrics.py by `make reference`: alerts of `mirrorless run --metrics-port`.\n"
    )
    groups = {"groups": [{"name": "mirrorless", "rules": rules}]}
    return head + yaml.safe_dump(groups, sort_keys=False, width=120, allow_unicode=True)


def _flow(title: str, metric: str, expression: str | None = None, unit: str | None = None) -> dict[str, Any]:
    """A graph with one line for each flow."""
    of_topic = TOPIC in BY_NAME[metric].dimensions
    usual = f"max by (source, target) ({{{metric}}})" if of_topic else f"{{{metric}}}"
    return _panel(
        title,
        [(series(expression or usual, _SELECTED), _OF_FLOW)],
        unit or _UNITS[BY_NAME[metric].unit],
        BY_NAME[metric].meaning,
    )


def _panel(title: str, queries: Iterable[tuple[str, str]], unit: str, meaning: str) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "description": meaning,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend}
            for number, (expression, legend) in enumerate(queries)
        ],
    }


def _mirrormaker2(title: str, metric: str) -> dict[str, Any]:
    """A graph of this program and of a MirrorMaker 2 whose MBeans the JMX exporter publishes."""
    attribute = metric.replace("-", "_")
    new, old = (f"sum by (source, target) ({prefix}_{attribute}{{{_SELECTED}}})" for prefix in (_MM2_NEW, _MM2_OLD))
    ours = series(f"sum by (source, target) ({{{metric}}})", _SELECTED)
    return _panel(
        title,
        [(ours, f"{_OF_FLOW}, Mirrorless"), (f"{new} or {old}", f"{_OF_FLOW}, MirrorMaker 2")],
        _UNITS[BY_NAME[metric].unit],
        f"{BY_NAME[metric].meaning} MirrorMaker 2's MBean has the name of KIP-1280 or the one before it.",
    )


def panels() -> list[dict[str, Any]]:
    """Return the panels of the board, two in a row."""
    top = series("topk(15, max by (source, target, topic) ({lag-records}))", _SELECTED)
    made = [
        _flow("Halted partitions", "partitions-halted"),
        _flow("Unreachable partitions", "partitions-unreachable"),
        _flow("Records", "record-count", "sum by (source, target) (rate({record-count}[5m]))", "cps"),
        _flow("Bytes", "byte-count", "sum by (source, target) (rate({byte-count}[5m]))", "Bps"),
        _flow("Lag", "lag-records", "sum by (source, target) ({lag-records})"),
        _flow("Lag in time", "lag-seconds"),
        _panel("Lag of topics, the 15 largest", [(top, "{{topic}}")], "short", BY_NAME["lag-records"].meaning),
        _flow("Replication latency, maximum", "replication-latency-ms-max"),
        _flow("Heartbeat age", "heartbeat-age-seconds"),
        _flow("Skipped gaps", "gap-count", "increase({gap-count}[15m])"),
        _flow("Skipped records", "left-out-count", "increase({left-out-count}[15m])"),
        _flow("Offsets by other producers", "foreign-count", "increase({foreign-count}[15m])"),
        _flow("Throttled by the source", "fetch-throttle-time-ms"),
        _flow("Throttled by the target", "produce-throttle-time-ms"),
        _flow("Group offsets committed", "group-offset-count", "increase({group-offset-count}[15m])"),
        _flow("Group offsets without translation", "offsets-unknown"),
        _mirrormaker2("Records, beside MirrorMaker 2", "record-rate"),
        _mirrormaker2("Bytes, beside MirrorMaker 2", "byte-rate"),
    ]
    for number, panel in enumerate(made):
        panel["id"] = number + 1
        panel["gridPos"] = {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8}
    return made


def board() -> str:
    """Return the board for Grafana."""
    known = series("{partitions-halted}")

    def chosen(label: str) -> dict[str, Any]:
        return {
            "name": label,
            "type": "query",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "query": f"label_values({known}, {label})",
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        }

    document = {
        "title": "Mirrorless",
        "uid": "mirrorless",
        "description": "Generated from src/mirrorless/metrics.py by `make reference`.",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "tags": ["kafka", "mirrorless"],
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                chosen("source"),
                chosen("target"),
            ]
        },
        "panels": panels(),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Write both files."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "alerts.yml").write_text(alerts(), encoding="utf-8")
    (FOLDER / "grafana.json").write_text(board(), encoding="utf-8")
