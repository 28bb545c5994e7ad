"""What the scripts of the Glue jobs share: their arguments, and Spark with a region for boto3 and S3A."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Mapping


def job_arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of what every job is started with; Glue's own arguments come too, so use `parse_known_args`."""
    # Without abbreviations: `--s` of somebody else's argument would be `--sample`.
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--MIRRORLESS_CONFIG", dest="config", required=True, help="location of the configuration")
    parser.add_argument("--MIRRORLESS_FLOW", dest="flow", required=True, help="the flow: primary->backup")
    parser.add_argument("--MIRRORLESS_METRICS", dest="namespace", help="CloudWatch namespace of the metrics, if any")
    parser.add_argument("--MIRRORLESS_REGION", dest="region", help="AWS region of the job")
    return parser


def region_variables(region: str | None) -> Mapping[str, str]:
    """Return the variables by which boto3 and Java's SDK know a region; on Glue a process may have none of them."""
    return {} if region is None else {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}


def glue_session(name: str, *, region: str | None) -> SparkSession:
    """Return the session; driver, executors and their Python processes know the region, and so does S3A."""
    os.environ.update(region_variables(region))
    builder = SparkSession.builder.appName(name)
    for key, value in region_variables(region).items():
        builder = builder.config(f"spark.executorEnv.{key}", value)
    if region is not None:
        builder = builder.config("spark.hadoop.fs.s3a.endpoint.region", region)
    return builder.getOrCreate()
