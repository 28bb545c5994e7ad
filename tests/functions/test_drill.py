"""drill compares two real clusters, stores its report in S3 and emits its figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mirrorless.metrics import METRICS, Emitter
from tests.support.events import schedule
from tests.support.offsets import commit, flow_of
from tests.support.world import fill

if TYPE_CHECKING:
    from tests.functions.conftest import Aws, Start
    from tests.support.world import World


def stored(aws: Aws, bucket: str) -> dict[str, bytes]:
    """Every object of a bucket."""
    s3 = aws.client("s3")
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def test_a_report_is_stored_and_figures_are_emitted(world: World, aws: Aws, start: Start) -> None:
    topic, bucket = world.topic(), aws.bucket()
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    flow_of(world, groups=topic)
    world.copy_to_the_end()
    commit(world.source, topic, {(topic, 0): 40})
    fill(world.source, topic, [b"not copied"] * 3)
    function = start("drill", MIRRORLESS_REPORTS=f"s3://{bucket}/drill/stack-forward")

    answer = function.invoke(schedule())

    assert answer["failed"] == [], answer
    assert answer["not_checked"] == []
    assert answer["rpo_records"] == 3
    folder = answer["report"].removeprefix(f"s3://{bucket}/")
    assert folder.startswith(f"drill/stack-forward/{world.source_alias}-{world.target_alias}/")
    objects = stored(aws, bucket)
    assert set(objects) == {f"{folder}/result.json", f"{folder}/result.html"}
    report: dict[str, Any] = json.loads(objects[f"{folder}/result.json"])["flows"][world.flow]
    assert report["rpo"]["records"] == 3
    checks = {one["check"]: one for one in report["checks"]}
    assert checks["positions of groups"]["text"] == "1 position compared, all the same"
    assert objects[f"{folder}/result.html"].startswith(b"<!doctype html>")
    metrics = function.metrics()
    assert set(metrics) == {one.name for one in METRICS if one.emitter is Emitter.DRILL}
    assert metrics["drill-checks-failed"] == [len(answer["failed"])]
    assert metrics["drill-rpo-records"] == [3]


def test_a_bucket_that_does_not_exist_fails_the_invocation_with_its_figures_emitted(world: World, start: Start) -> None:
    fill(world.source, world.topic(), [b"not copied"])
    function = start("drill", MIRRORLESS_REPORTS="s3://no-such-bucket/drill/stack-forward")
    function.begin(schedule())
    answer = function.end()
    assert answer.error is not None
    assert answer.error["errorType"] == "AwsError"
    assert "the report of the drill is not stored: " in answer.error["errorMessage"]
    assert "drill-checks-failed" in function.metrics()
