"""Conclude a run: analyse it, and read the summary of its report.

Imports the analysis, which is slow: other modules of this package import this module only when they need it.
"""

from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.pipeline import Listener
from mplab.analysis.pipeline import analyze as analyze_run
from mplab.analysis.report.summary import SummaryRow, summary_rows
from mplab.analysis.results.reported import read_summary
from mplab.analysis.verdicts.wording import sentence
from mplab.base.errors import MplabError
from mplab.run.hostside.junit import Case


@dataclass(frozen=True)
class RunSummary:
    """The summary of a run's report, from ``report/summary.json``.

    Attributes:
        rows: median and confidence interval for each metric and transport, headline metrics first, as texts to print.
        answers: a sentence for each question that the experiment asks.
        claims: each claim of the experiment with its verdict.
        warnings: reasons to doubt the numbers, one sentence each.
        limits: one check for each limit of the experiment's budgets; `failure` is set if the limit is broken.
    """

    rows: tuple[SummaryRow, ...]
    answers: tuple[str, ...]
    claims: tuple[str, ...]
    warnings: tuple[str, ...]
    limits: tuple[Case, ...]

    @property
    def broken_budgets(self) -> tuple[str, ...]:
        """Return a sentence for each budget limit that the run broke."""
        return tuple(f"{case.name}: {case.failure}" for case in self.limits if case.failure)


def summary_of(run: Path) -> RunSummary:
    """Read the summary of an analysed run.

    Raises:
        NotAnalysedError: the run has no report.
        TablesError: ``summary.json`` is damaged, or from a newer mplab.
    """
    content = read_summary(run)
    return RunSummary(
        rows=tuple(summary_rows(content)),
        answers=tuple(answer.sentence for answer in content.answers),
        claims=tuple(
            sentence(claim.text, claim.verdict, [one.verdict for one in claim.found], certain=claim.confirmed)
            for claim in content.claims
            if claim.verdict
        ),
        warnings=content.warnings,
        limits=tuple(
            Case("budget", budget.about, failure=budget.text if budget.verdict == "broken" else "")
            for budget in content.budgets
        ),
    )


def analyze(run: Path, progress: Listener | None = None) -> None:
    """Analyse a run, complete or not, and make its report.

    Raises:
        MplabError: the run directory cannot be written.
        AnalysisError: see `mplab.analysis.pipeline.analyze`.
    """
    try:
        analyze_run(run, progress=progress)
    except OSError as error:
        raise MplabError(
            f"{error.filename or run}: {error.strerror}: the analysis writes into the run directory. Make it writable "
            "and make space, or analyse a copy of it"
        ) from error
