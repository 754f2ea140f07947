"""`headgate job`: run, start, watch, stop and mend jobs. Each verb stands in a file by its subject."""

from __future__ import annotations

import click

from headgate.cli.job.job_lag import lag
from headgate.cli.job.job_mend import accept_gap, repair
from headgate.cli.job.job_run import run_job
from headgate.cli.job.job_show import list_runs, show
from headgate.cli.job.job_stream import restart, start, stop


@click.group()
def group() -> None:
    """Run, start, watch, stop and mend jobs.

    A batch run ends when all that was there is processed; a stream goes on until it is stopped. Both
    go on from where the other left off.

    \b
    Examples:
      headgate job run bronze
      headgate job start
      headgate job show bronze
      headgate job lag
    """


for _command in (run_job, start, stop, restart, list_runs, show, lag, repair, accept_gap):
    group.add_command(_command)
