"""Budgets of an experiment file: limits of metrics that `mplab run` and `mplab compare` enforce."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from mplab.base.suggest import show, unknown
from mplab.format.experiment import Budget, Limit, Statistic
from mplab.format.names import FileModel
from mplab.format.units import Percent
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import KeyPath

_LIMIT = re.compile(r"(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z%][A-Za-z/%]*)?", re.ASCII)


def parse_limit(value: object) -> Limit:
    """Parse a limit: ``"2 s"``, ``"4.1"`` or ``4.1``. The unit is compared with that of the metric later.

    Raises:
        ValueError: `value` is no number, with or without a unit.
    """
    readable = isinstance(value, str | int | float) and not isinstance(value, bool)
    match = _LIMIT.fullmatch(str(value).strip()) if readable else None
    if match is None:
        raise ValueError(f"limit {show(value)}: a number with the metric's unit is needed, like '2 s'")
    return Limit(float(match["number"]), match["unit"] or "")


LimitText = Annotated[
    Limit,
    BeforeValidator(parse_limit),
    PlainSerializer(lambda limit: limit and limit.text, when_used="json"),
    WithJsonSchema({"type": ["string", "number"], "examples": ["2 s", "5 Mbit/s", 4.1]}),
]


class BudgetFile(FileModel):
    """Budget of one metric as written in a file: its limits, and the cells to which they apply."""

    transport: str = Field("", description="Label of the transport that it is about; all by default.")
    scenarios: tuple[str, ...] = Field((), description="Labels of the scenarios that it is about; all by default.")
    links: tuple[str, ...] = Field((), description="Link conditions that it is about; all by default.")
    labels: dict[str, str] = Field({}, description="Labels of the values that it is about: {size: 1 MB}.")
    statistic: Statistic = Field("median", description="Statistic of the values that the limits apply to.")
    at_most: LimitText | None = Field(None, description="Maximum.")
    at_least: LimitText | None = Field(None, description="Minimum.")
    no_worse_than: Percent | None = Field(
        None, description="Maximum change to the worse from the baseline, in mplab compare."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        limits = (self.at_most, self.at_least, self.no_worse_than)
        if all(limit is None for limit in limits):
            raise ValueError("a budget needs 'at_most', 'at_least' or 'no_worse_than'")
        if self.no_worse_than is not None and self.statistic != "median":
            raise ValueError(f"'no_worse_than' is about the median, not about '{self.statistic}'")
        most, least = self.at_most, self.at_least
        if most is not None and least is not None and most.unit == least.unit and least.value > most.value:
            raise ValueError(f"at_least {least.text} is more than at_most {most.text}: no value is allowed")
        return self


_BUDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"anyOf": [BUDGET := BudgetFile.model_json_schema(), {"type": "array", "items": BUDGET}]},
}

BudgetsByMetric = Annotated[dict[str, Any], WithJsonSchema(_BUDGET_SCHEMA)]
"""Metric → a budget, or a list of budgets. Each is validated separately, so that errors name its line."""


def read_budgets(
    checker: Checker, transports: Sequence[str], scenarios: Sequence[str], links: Sequence[str]
) -> list[Budget]:
    """Return the valid budgets of an experiment file, in its order. Add the problems of invalid ones to `checker`.

    Args:
        checker: checker of the experiment file.
        transports: labels of the experiment's transports.
        scenarios: labels of the experiment's scenarios.
        links: names of the experiment's link conditions.
    """
    budgets = []
    data = checker.document.data.get("budgets")
    for metric, entry in data.items() if isinstance(data, dict) else ():
        several = isinstance(entry, list)
        if several and not entry:
            checker.add(("budgets", metric), "empty: at least 1 needed")
        for position, item in enumerate(entry if several else (entry,)):
            path: KeyPath = ("budgets", metric, position) if several else ("budgets", metric)
            file = checker.model(BudgetFile, item, path)
            if file is None:
                continue
            _check_names(checker, (*path, "transport"), "transport label", file.transport, transports)
            for index, label in enumerate(file.scenarios):
                _check_names(checker, (*path, "scenarios", index), "scenario label", label, scenarios)
            for index, name in enumerate(file.links):
                _check_names(checker, (*path, "links", index), "link", name, links)
            budgets.append(_budget(metric, checker.document.place(path), file))
    return budgets


def _check_names(checker: Checker, path: KeyPath, kind: str, name: str, known: Sequence[str]) -> None:
    if name and name not in known:
        checker.add(path, unknown(kind, name, known))


def _budget(metric: str, place: str, file: BudgetFile) -> Budget:
    values = dict(file)
    return Budget(metric=metric, place=place, no_worse_than_percent=values.pop("no_worse_than"), **values)
