"""Check the metrics that an experiment names in budgets, claims and its stop rule against those of its scenarios.

Imports the analysis, which is slow: other modules of this package import this module only when they need it.
"""

from pathlib import Path

from mplab.analysis.record.run import read_run
from mplab.analysis.scores.metrics import metrics_of
from mplab.analysis.verdicts.budgets import check_budget
from mplab.analysis.verdicts.claimcheck import check_claim
from mplab.base.deferred import deferred
from mplab.format.experiment import IntervalRule
from mplab.run.hostrpc import Answer
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.strict.check import raise_lines


def check_metrics(experiment: Experiment) -> None:
    """Check that the experiment's scenarios have the metrics that its budgets, claims and its stop rule name.

    Raises:
        InputError: no scenario has such a metric, or its unit or labels differ; one line for each problem.
    """
    metrics = metrics_of({use.label: use.name for use in experiment.scenarios})
    problems = [(budget.place, check_budget(budget, metrics)) for budget in experiment.budgets]
    problems += [(claim.place, check_claim(claim, metrics, experiment)) for claim in experiment.claims]
    rule = experiment.ending.interval
    if rule is not None:
        with deferred("it imports the figures, which are slow to import"):
            from mplab.analysis.stop_rule import check_rule
        problems.append((rule.place, check_rule(rule, metrics)))
    raise_lines([f"{location}: {problem}" for location, problem in problems if problem])


def intervals_of(run: Path, rule: IntervalRule) -> Answer:
    """Score the ok cells of a run; return whether its confidence intervals satisfy `rule`. Raises AnalysisError."""
    with deferred("it imports the figures, which are slow to import"):
        from mplab.analysis.stop_rule import look
    state = look(read_run(run), rule)
    return {"enough": state.enough, "text": state.text, "numbers": state.to_json()}
