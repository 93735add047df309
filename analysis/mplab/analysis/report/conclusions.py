"""Conclusions from a run's statistics, computed once for the report and for ``summary.json``."""

from dataclasses import dataclass

from mplab.analysis.report.headline import HeadlineAnswer, answers
from mplab.analysis.report.view import warnings
from mplab.analysis.statistics.result import Analysis
from mplab.analysis.verdicts.budgets import Kept, judge_limits, measured_in
from mplab.analysis.verdicts.claims import Outcome, outcomes


@dataclass(frozen=True)
class Conclusions:
    """Everything that is concluded from an `Analysis`.

    Attributes:
        warnings: what the reader has to know before the numbers.
        answers: one for each headline metric.
        claims: one for each claim of the experiment.
        budgets: each limit of the experiment's budgets, kept or broken.
    """

    warnings: tuple[str, ...]
    answers: tuple[HeadlineAnswer, ...]
    claims: tuple[Outcome, ...]
    budgets: tuple[Kept, ...]


def conclude(analysis: Analysis) -> Conclusions:
    """Compute the conclusions.

    Raises:
        BudgetError: a limit has a unit that its metric has not.
    """
    experiment = analysis.run.manifest.experiment
    return Conclusions(
        warnings=tuple(warnings(analysis)),
        answers=tuple(answers(analysis)),
        claims=tuple(outcomes(analysis)),
        budgets=tuple(judge_limits(experiment.budgets, measured_in(analysis.groups), experiment.seed)),
    )
