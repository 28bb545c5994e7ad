"""The comparison of one flow's two sides, as an AWS Glue batch job; its result is a line of JSON in the job's log."""

from __future__ import annotations

import json
import sys

from mirrorless.publishing.cloudwatch import CloudWatch
from mirrorless.publishing.glue_session import glue_session, job_arguments
from mirrorless.settings import load
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import NOT_COMPARED
from mirrorless.verify.page import page
from mirrorless.verify.parquet import write_parquet
from mirrorless.verify.report import METRICS, summary, to_json
from mirrorless.verify.report_file import write


def main() -> None:
    """Compare, report, and fail the job run only if something could not be compared; differences are a metric."""
    parser = job_arguments(__doc__)
    parser.add_argument("--topics", default=".*", help="patterns of source topics, with commas")
    parser.add_argument("--since", help="only records of this time or later, or of an age such as 26h")
    parser.add_argument("--sample", type=float, default=100.0, help="only so many percent of the records")
    parser.add_argument("--report", help="a folder, such as s3://bucket/verify, for JSON, Parquet and the page")
    arguments, _glues_own = parser.parse_known_args()
    spark = glue_session(f"mirrorless verify {arguments.flow}", region=arguments.region)
    flow = load(arguments.config).flow(arguments.flow)
    terms = ComparisonTerms.read(topics=arguments.topics, since=arguments.since, percent=arguments.sample)

    def say(text: str) -> None:
        print(json.dumps({"flow": flow.name, "event": "Verifying", "what": text}), flush=True)  # noqa: T201

    verdict, windows = verify_flow(spark, flow, terms, say=say)
    result = summary(verdict)
    if arguments.namespace:
        with CloudWatch(flow.name, namespace=arguments.namespace) as cloudwatch:
            cloudwatch.put({name: result[name] for name in METRICS})
    if arguments.report:
        folder = f"{arguments.report.rstrip('/')}/{flow.name.replace('->', '-')}/{verdict.began_ms}"
        write(f"{folder}/result.json", to_json([verdict]).encode())
        write(f"{folder}/result.html", page([verdict]).encode())
        write_parquet(folder, [(verdict, windows)])
    print(json.dumps(result), flush=True)  # noqa: T201
    if verdict.troubles:  # differences have a separate metric and alarm
        sys.exit(NOT_COMPARED)


if __name__ == "__main__":
    main()
