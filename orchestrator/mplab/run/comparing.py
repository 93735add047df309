"""Compare a run with a baseline: given runs, or the earlier runs of the same experiment.

Imports the analysis, which is slow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.record.run import Run, read_run
from mplab.analysis.results.frames import Results, load, started
from mplab.analysis.verdicts.compare import ComparedRuns, Correction
from mplab.analysis.verdicts.compare import compare as compare_runs
from mplab.analysis.verdicts.gate import GateCheck, checks
from mplab.analysis.verdicts.trend import Shift, histories, shifts
from mplab.base.errors import GateError, InputError, NoBaselineError
from mplab.run.run_directory import RUNS

WINDOW = 10
"""Number of earlier runs that a run is compared with, unless another one is given."""


@dataclass(frozen=True)
class RunComparison:
    """A run compared with the runs of a baseline.

    Attributes:
        runs: the change of every metric from the baseline to the run, by scenario, link and transport.
        checks: results of `gate.checks`: budgets, headline metrics without a budget, levels of metrics over time.
        shifts: for each headline metric whose level has changed over the experiment's runs, when and by how much.
    """

    runs: ComparedRuns
    checks: tuple[GateCheck, ...]
    shifts: tuple[Shift, ...]

    @property
    def failed(self) -> tuple[GateCheck, ...]:
        """Return the checks that failed."""
        return tuple(check for check in self.checks if check.state == "failed")

    def check(self) -> None:
        """Raise GateError if one of `checks` failed."""
        if not self.failed:
            return
        first = f"{self.failed[0].about}: {self.failed[0].text}"
        more = f"; and {len(self.failed) - 1} more" if len(self.failed) > 1 else ""
        name = self.runs.run.manifest.run_id
        raise GateError(f"{name}: {len(self.failed)} of {len(self.checks)} checks failed: {first}{more}")


def compare(
    run: Path | str,
    baseline: Sequence[Path | str] = (),
    *,
    runs: Path | str = RUNS,
    window: int = WINDOW,
    correction: Correction = "bh",
) -> RunComparison:
    """Compare a run with the pooled runs of a baseline.

    Args:
        run: run directory.
        baseline: run directories; none: the runs of the same experiment before `run`, without runs of chosen cells.
        runs: folder in which earlier runs are searched; not used with a `baseline`.
        window: maximum number of earlier runs.
        correction: correction of p-values for the number of metrics: ``holm``, ``bh`` or ``none``.

    Raises:
        InputError: `run` is in the baseline, or there is no earlier run (NoBaselineError).
        AnalysisError: a directory is not a run, or was not analysed.
    """
    now = read_run(Path(run))
    before = _named(now, [Path(path) for path in baseline]) if baseline else _earlier(now, Path(runs), window)
    compared = compare_runs(before, now, correction)
    past = histories(Results((*before, now)), now.manifest.experiment.name)
    return RunComparison(compared, tuple(checks(compared, past)), tuple(shifts(past)))


def _named(run: Run, baseline: Sequence[Path]) -> list[Run]:
    """Read the runs in `baseline`; return them oldest first. Raises InputError if a run is listed twice or is `run`."""
    if len({path.resolve() for path in (run.directory, *baseline)}) <= len(baseline):
        raise InputError("a run cannot be compared with itself: one is named twice")
    return sorted(map(read_run, baseline), key=started)


def _earlier(run: Run, folder: Path, window: int) -> list[Run]:
    """Return the last `window` analysed runs of the experiment before `run`, oldest first. Raises NoBaselineError.

    Runs of only some cells of the experiment (``mplab run --cell``) are left out: their other series are missing.
    """
    name = run.manifest.experiment.name
    earlier = [
        other
        for other in load(folder).records
        if other.manifest.experiment.name == name
        and not other.manifest.plan.chosen
        and started(other) < started(run)
        and (other.directory / "report" / "summary.json").is_file()
    ]
    if not earlier:
        raise NoBaselineError(
            f"{folder}: {NoBaselineError.PHRASE} {name} before {run.manifest.run_id} to compare it with"
        )
    return earlier[-window:]
