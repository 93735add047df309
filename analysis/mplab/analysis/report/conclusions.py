"""Draw conclusions from a run's statistics, once for the report and for ``summary.json``."""

from dataclasses import dataclass

from mplab.analysis.report.headline import HeadlineAnswer, answers
from mplab.analysis.report.view import warnings
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.verdicts.budgets import Kept, judge_limits, measured_in
from mplab.analysis.verdicts.claims import Outcome, outcomes


@dataclass(frozen=True)
class Conclusions:
    """Conclusions from an `Analysis`.

    Attributes:
        warnings: facts that the reader must know before the numbers.
        answers: one for each headline metric, scenario and link condition.
        claims: one for each claim of the experiment.
        budgets: one for each limit of a budget and each series to which it applies.
    """

    warnings: tuple[str, ...]
    answers: tuple[HeadlineAnswer, ...]
    claims: tuple[Outcome, ...]
    budgets: tuple[Kept, ...]


def conclude(analysis: Analysis) -> Conclusions:
    """Compute the conclusions.

    Raises:
        BudgetError: a limit cannot be converted to its metric's unit.
    """
    experiment = analysis.run.manifest.experiment
    return Conclusions(
        warnings=tuple(warnings(analysis)),
        answers=tuple(answers(analysis)),
        claims=tuple(outcomes(analysis)),
        budgets=tuple(judge_limits(experiment.budgets, measured_in(analysis.groups), experiment.seed)),
    )
