"""The runs of a Glue job, by Glue's API; none where the deployment has no job."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import AwsError
from mirrorless.functions.job_decision import JobRun, Patience
from mirrorless.settings.aws import client

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.functions.job_decision import JobRuns

_LATEST: Final = 50
_ENDS_ITSELF_S: Final = 600.0
"""A run ends with its lease, once a function waits for that."""
RELEASE_ARGUMENT: Final = "--MIRRORLESS_RELEASE"


@contextmanager
def glue_runs(job: str | None) -> Iterator[JobRuns]:
    """Yield the runs of a job, None for no job; raises `AwsError` for any error of Glue in the context."""
    if job is None:
        yield NoRuns()
        return
    try:
        with client("glue", region=None) as glue:
            yield GlueRuns(glue, job)
    except ValueError as error:
        raise AwsError(f"job {job}: {error}") from None


class NoRuns:
    """`job_decision.JobRuns` of a deployment with `GlueJobs=false`."""

    patience = Patience()
    ends_itself_s = 0.0
    missing = "the deployment has no copy job (GlueJobs=false)"

    def latest(self) -> list[JobRun]:
        """Return no run."""
        return []

    def stop(self, runs: Sequence[str]) -> None:
        """Stop nothing."""

    def start(self, release: str | None = None) -> str:  # noqa: ARG002 -- as of all
        """Raise `AwsError`: the configuration has changed since the deployment, which would be refused now."""
        raise AwsError(f"{self.missing}, and mirrorless.engine is spark: deploy with GlueJobs=true, or set functions")


class GlueRuns:
    """`job_decision.JobRuns` on AWS; `glue` is boto3's client."""

    def __init__(self, glue: Any, job: str) -> None:  # noqa: ANN401
        self.patience = Patience()
        self.ends_itself_s = _ENDS_ITSELF_S
        self._glue = glue
        self._job = job

    @property
    def missing(self) -> str:
        """Nothing: a Glue job brings along what it needs."""
        return ""

    def latest(self) -> list[JobRun]:
        """Return the last fifty runs."""
        answer = self._glue.get_job_runs(JobName=self._job, MaxResults=_LATEST)
        return [
            JobRun(
                id=run["Id"],
                state=run["JobRunState"],
                started=run["StartedOn"],
                ended=run.get("CompletedOn"),
                release=run.get("Arguments", {}).get(RELEASE_ARGUMENT),
            )
            for run in answer["JobRuns"]
        ]

    def stop(self, runs: Sequence[str]) -> None:
        """Ask Glue to stop these runs."""
        answer = self._glue.batch_stop_job_run(JobName=self._job, JobRunIds=list(runs))
        if errors := answer.get("Errors"):
            raise ValueError(f"run {errors[0].get('JobRunId')} was not stopped: {errors[0].get('ErrorDetail')}")

    def start(self, release: str | None = None) -> str:
        """Start one, unless another invocation did at the same time: MaxConcurrentRuns is 1."""
        # A run's arguments are those that it was started with; the job's defaults are not among them.
        arguments = {} if release is None else {RELEASE_ARGUMENT: release}
        try:
            return str(self._glue.start_job_run(JobName=self._job, Arguments=arguments)["JobRunId"])
        except self._glue.exceptions.ConcurrentRunsExceededException:
            return ""
