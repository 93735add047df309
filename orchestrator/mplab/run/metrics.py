"""What an experiment says of metrics, compared with what its scenarios measure: budgets, and the stop rule's intervals.

Imports the analysis, which is slow: the other modules of this package import this one when they need it.
"""

from pathlib import Path

from mplab.analysis.budgets import check_budget
from mplab.analysis.enough import IntervalRule, check_rule, look
from mplab.analysis.manifest import Budget
from mplab.analysis.pipeline import metrics_of
from mplab.analysis.run import read_run
from mplab.run.outside import Answer
from mplab.userfiles.check import raise_lines
from mplab.userfiles.ending import EnoughRule
from mplab.userfiles.experiment import Experiment


def check_metrics(experiment: Experiment) -> None:
    """Check the metrics that budgets and the stop rule name.

    Raises:
        InputError: no scenario has such a metric, or it has another unit or other labels; one line for each.
    """
    metrics = metrics_of({use.label: use.name for use in experiment.scenarios})
    found = [
        (budget.place, check_budget(Budget.model_validate(budget.to_json()), metrics)) for budget in experiment.budgets
    ]
    rule = experiment.ending.interval
    if rule is not None:
        found.append((rule.place, check_rule(IntervalRule.model_validate(rule.to_json()), metrics)))
    raise_lines([f"{place}: {problem}" for place, problem in found if problem])


def intervals_of(run: Path, rule: EnoughRule) -> Answer:
    """Score the complete cells of a run and answer whether its intervals are narrow enough. Raises AnalysisError."""
    found = look(read_run(run), IntervalRule.model_validate(rule.to_json()))
    return {"enough": found.enough, "text": found.text, "numbers": found.to_json()}
