"""Bugs to plant in the source, each of which at least one of the named tests has to notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Bug:
    """Replaces `right`, which the file has once, by `wrong`."""

    file: str
    right: str
    wrong: str
    tests: str
    """Files or folders below `tests/unit`, by blanks."""


_COPY: Final = (
    Bug(
        "copy/resume/decision.py",
        "if base.downstream > target.log_end:",
        "if base.downstream > target.log_end + 1:",
        "copy/test_resume_decision.py copy/test_resolver.py",
    ),
    Bug(
        "copy/resume/decision.py",
        "if target.unreplicated and not target.remembered:",
        "if False:",
        "copy/test_resume_decision.py copy/test_resolver.py",
    ),
    Bug(
        "copy/resume/decision.py",
        "wraps = max(0, target.counted_end - base.downstream - last_sequence - 1) // SEQUENCES",
        "wraps = 0",
        "copy/test_resume_decision.py",
    ),
    Bug(
        "copy/slot/error_policy.py",
        "elif copy.suspected is None or copy.retry.attempts < patience:",
        "elif copy.retry.attempts < patience:",
        "copy/test_error_policy.py copy/test_lease.py",
    ),
    Bug(
        "copy/slot/error_policy.py",
        "        if copy.in_doubt:\n            return  # an append before it failed",
        "        if False:\n            return  # an append before it failed",
        "copy/test_error_policy.py copy/test_lease.py",
    ),
    Bug(
        "copy/partition/send_window.py",
        "self._oldest_sent_ms = min(self._oldest_sent_ms, timestamp_ms)",
        "self._oldest_sent_ms = timestamp_ms",
        "copy/test_partition_state.py copy/test_appender.py copy/test_lease.py",
    ),
    Bug(
        "progress/run_marks.py",
        "if mark.claim < self._deleted.get(key, -1):",
        "if False:",
        "copy/test_run_marks.py",
    ),
    Bug(
        "progress/run_marks.py",
        "key=lambda mark: mark.claim,\n        )\n\n    def watched",
        "key=lambda mark: -mark.claim,\n        )\n\n    def watched",
        "copy/test_run_marks.py",
    ),
    Bug(
        "copy/offset_syncs/schedule.py",
        "if follows_upstream and before is not None and first_downstream == before.last_downstream + 1:",
        "if follows_upstream and before is not None:",
        "copy/test_offset_syncs_schedule.py",
    ),
    Bug(
        "copy/slot/error_policy.py",
        "return copy.exact is None or gap.kind in (GapKind.RETENTION, GapKind.TARGET_LOST)",
        "return False",
        "copy/test_error_policy.py copy/test_lease.py",
    ),
)

_OPERATIONS: Final = (
    Bug(
        "operations/runner.py",
        "if record is not None and record.state is StepState.DONE:",
        "if record is not None:",
        "operations/test_runner.py",
    ),
    Bug("operations/runner.py", "for step in reversed(steps):", "for step in steps:", "operations/test_runner.py"),
    Bug(
        "operations/runner.py",
        "return record is None or record.state is StepState.UNDONE",
        "return True",
        "operations/test_runner.py",
    ),
    Bug(
        "operations/fences.py",
        'return [] if "*" in literal else [one',
        "return [one",
        "operations/test_fence_choice.py operations/test_fence_ownership.py",
    ),
    Bug(
        "operations/fences.py",
        "if fenced() & topics == kept:",
        "if True:",
        "operations/test_fence_choice.py operations/test_fence_ownership.py",
    ),
    Bug(
        "operations/fences.py",
        "if syncing or is_serverless(cluster) or logs_in_with_iam(cluster):",
        "if syncing or is_serverless(cluster):",
        "operations/test_fence_choice.py operations/test_fence_ownership.py",
    ),
    Bug(
        "operations/switches.py",
        "if last.isdecimal() and int(last) > number:",
        "if False:",
        "operations/test_switches.py",
    ),
    Bug(
        "operations/switches.py",
        'changes = [*({"Action": "DELETE", "ResourceRecordSet": one} for one in there)]',
        "changes: list[dict[str, object]] = []",
        "operations/test_switches.py",
    ),
    Bug(
        "operations/drill/positions.py",
        "if position.not_copied and found.outcome in WRONG:",
        "if position.not_copied:",
        "operations/test_positions.py",
    ),
    Bug(
        "operations/drill/checks.py",
        "    if seconds > limit:\n",
        "    if seconds < limit:\n",
        "operations/test_checks.py",
    ),
)

_SETTINGS_AND_METADATA: Final = (
    Bug(
        "settings/precedence.py",
        'return first(entries, f"{flow}.{key}", key)',
        'return first(entries, key, f"{flow}.{key}")',
        "settings/test_precedence.py settings/test_load.py",
    ),
    Bug(
        "settings/precedence.py",
        'return first(entries, key, f"{target}.{key}")',
        "return first(entries, key)",
        "settings/test_precedence.py settings/test_load.py",
    ),
    Bug(
        "settings/precedence.py",
        'if (side, role) == ("target", "producer"):',
        "if False:",
        "settings/test_precedence.py settings/test_load.py",
    ),
    Bug(
        "settings/masking.py",
        "if is_secret(key) or _LOGIN.search(value) is not None:",
        "if is_secret(key):",
        "settings/test_masking.py",
    ),
    Bug(
        "settings/properties.py",
        "if earlier is not None and earlier.value.strip() == value.strip():",
        "if earlier is not None:",
        "settings/test_properties.py settings/test_load.py",
    ),
    Bug(
        "metadata/config_plan.py",
        "if now is None or (name == MAX_BYTES and now.value == FENCED_BYTES):",
        "if now is None:",
        "metadata",
    ),
    Bug(
        "metadata/config_plan.py",
        "return one.origin == Origin.DEFAULT and not chosen.selects_default(name)",
        "return one.origin == Origin.DEFAULT",
        "metadata",
    ),
    Bug(
        "metadata/timestamp_limits.py",
        "if oldest_ms is None or limit < oldest_ms}",
        "if oldest_ms is not None and limit < oldest_ms}",
        "metadata",
    ),
    Bug(
        "metadata/acl_plan.py",
        "for acl in sorted((acls.created or frozenset()) - frozenset(translated.values())):",
        "for acl in sorted((acls.created or frozenset()) - frozenset(wanted)):",
        "metadata",
    ),
    Bug(
        "metadata/acl_plan.py",
        'operation="READ" if everything else acl.operation',
        "operation=acl.operation",
        "metadata",
    ),
)

BUGS: Final = (*_COPY, *_OPERATIONS, *_SETTINGS_AND_METADATA)
