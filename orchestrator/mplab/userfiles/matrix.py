"""Combinations of scenario, transport and link condition that an experiment runs: `include` and `exclude`."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from mplab.base.suggest import unknown
from mplab.format.experiment import FACTORS, Cells, Factor, Matrix


def _one_or_more(found: object) -> object:
    """Return one pattern, or a list of patterns, as a tuple: strict validation accepts no list from a validator."""
    if isinstance(found, str):
        return (found,)
    return tuple(found) if isinstance(found, list) else found


_PATTERN = {"type": "string", "minLength": 1}
Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [_PATTERN, {"type": "array", "items": _PATTERN}]}),
]


class CellsFile(BaseModel):
    """A set of combinations: those that match a pattern of each given factor; ``*`` and ``?`` are wildcards."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: Patterns = Field((), description="Labels of scenarios; all by default.")
    transport: Patterns = Field((), description="Labels of transports; all by default.")
    link: Patterns = Field((), description="Names of link conditions; all by default.")

    @model_validator(mode="after")
    def _says_something(self) -> "CellsFile":
        if not (self.scenario or self.transport or self.link):
            raise ValueError("says nothing: one of 'scenario', 'transport' and 'link' is needed")
        return self

    def to_cells(self) -> Cells:
        """Return the set as an experiment has it."""
        return Cells(self.scenario, self.transport, self.link)


def problems(matrix: Matrix, labels: Mapping[Factor, Sequence[str]]) -> Iterable[tuple[tuple[str | int, ...], str]]:
    """Yield the path and text of each problem: patterns that match nothing, and labels without any cell.

    Args:
        matrix: as in the file.
        labels: labels of each factor of the experiment.
    """
    found = False
    for key, given in (("include", matrix.include), ("exclude", matrix.exclude)):
        for index, cells in enumerate(given):
            for factor in FACTORS:
                for pattern in getattr(cells, factor):
                    if not any(fnmatchcase(label, pattern) for label in labels[factor]):
                        found = True
                        yield (key, index, factor), unknown(f"{factor} of this experiment", pattern, labels[factor])
    if found or not all(labels[factor] for factor in FACTORS):
        return
    combinations = [
        (scenario, transport, link)
        for scenario in labels["scenario"]
        for transport in labels["transport"]
        for link in labels["link"]
    ]
    left = [combination for combination in combinations if matrix.has(combination)]
    key = "exclude" if matrix.exclude else "include"
    for place, factor in enumerate(FACTORS):
        there = {combination[place] for combination in left}
        for label in labels[factor]:
            if label not in there:
                yield (key,), f"{factor} '{label}' is left without any cell: take it out of '{factor}s'"
