"""Budgets beside what the scenarios measure: before a run whether they can be kept, after it whether they were."""

from pathlib import Path

from mplab.run.junit import Case
from mplab.userfiles.check import raise_lines
from mplab.userfiles.experiment import Experiment


def check_budgets(experiment: Experiment) -> None:
    """Raise InputError when a budget is of a metric that no scenario has, in another unit, or of other labels."""
    if not experiment.budgets:
        return
    from mplab.analysis.budgets import check_budget  # noqa: PLC0415 - slow to import, needed by few experiments
    from mplab.analysis.pipeline import metrics_of  # noqa: PLC0415 - as above

    metrics = metrics_of({use.label: use.name for use in experiment.scenarios})
    checked = [(budget.place, check_budget(budget, metrics)) for budget in experiment.budgets]
    raise_lines([f"{place}: {problem}" for place, problem in checked if problem])


def budget_cases(run: Path) -> list[Case]:
    """The limits of a run's report as checks."""
    from mplab.analysis.pipeline import summary_json  # noqa: PLC0415 - as above

    return [
        Case("budget", one["about"], failure=one["text"] if one["verdict"] == "broken" else "")
        for one in summary_json(run).get("budgets", [])
    ]


def broken_budgets(run: Path) -> list[str]:
    """What is said of each broken budget in a run's report."""
    return [f"{case.name}: {case.failure}" for case in budget_cases(run) if case.failure]
