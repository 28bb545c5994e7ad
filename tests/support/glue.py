"""What moto's Glue does not do: runs that stay under way, and `BatchStopJobRun`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from moto.core.responses import ActionResult
from moto.glue.responses import GlueResponse
from moto.moto_api import state_manager

if TYPE_CHECKING:
    from collections.abc import Iterator

_RUNS = "glue::job_run"


@contextmanager
def lasting_runs() -> Iterator[None]:
    """Runs of a job stay in STARTING until they are stopped; as long as the context lasts."""

    def batch_stop_job_run(response: Any) -> ActionResult:  # noqa: ANN401 -- moto's
        job = response.glue_backend.get_job(response._get_param("JobName"))
        for run in job.job_runs:
            if run.job_run_id in response._get_param("JobRunIds"):
                run.status = "STOPPING"
        return ActionResult({"SuccessfulSubmissions": [], "Errors": []})

    state_manager.set_transition(_RUNS, transition={"progression": "manual", "times": 1_000_000})
    with patch.object(GlueResponse, "batch_stop_job_run", batch_stop_job_run, create=True):
        yield
    state_manager.unset_transition(_RUNS)
