"""Read the catalogue of papers: one file per paper, with a row for each figure, table or number of results.

A row names the experiment of ours that repeats it. Claims of this experiment name the row (``figure: han2015-fig6``).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from mplab.base.errors import InputError
from mplab.base.places import EXPERIMENTS
from mplab.base.suggest import did_you_mean, show, unknown
from mplab.format.names import FileModel, Name, format_number, pattern_schema, text_like
from mplab.userfiles.experiments.experiment import CellsFile, StopFile, Use
from mplab.userfiles.strict.check import Checker, check_kind, raise_lines
from mplab.userfiles.strict.yaml import Document, load_yaml

CATALOGUE = EXPERIMENTS / "papers"
"""Folder of the catalogue that comes with mplab."""
FORMAT = 1
Form = Literal["quick", "full"]
FORMS: tuple[Form, ...] = ("quick", "full")

_ROW = re.compile(r"[a-z]+[0-9]{4}-(fig|table|sec)[0-9]+(\.[0-9]+)*[a-z]{0,2}(-[a-z])?")
RowId = Annotated[
    str,
    text_like(_ROW, "row", "the paper, then figN, tableN or secN.N are needed, like 'han2015-fig6'"),
    pattern_schema(_ROW),
]


class FormFile(FileModel):
    """Keys of an experiment file that replace those of the experiment in one form of its run."""

    repetitions: int | None = Field(None, ge=1, le=1000, description="Number of repetitions.")
    transports: tuple[Use, ...] = Field((), description="Transports; by default, those of the experiment.")
    scenarios: tuple[Use, ...] = Field((), description="Scenarios, such as those of the experiment with fewer values.")
    parameters: dict[Name, dict[str, Any]] = Field(
        {}, description="Label of a scenario → parameters that replace the experiment's."
    )
    include: tuple[CellsFile, ...] = Field((), description="The combinations that are run; all by default.")
    exclude: tuple[CellsFile, ...] = Field((), description="Of these, the combinations that are not run.")
    stop: StopFile | None = Field(None, description="Rules that end the run before its plan is done.")


class FormsFile(FileModel):
    """The two forms in which an experiment is run for the page of the papers."""

    quick: FormFile = Field(description="The quick form: every figure, wide intervals.")
    full: FormFile = Field(description="The full form.")


class RowFile(FileModel):
    """A figure, table or number of results in a paper, and what mplab has for it."""

    id: RowId = Field(
        description="The paper, then figN, tableN or secN.N, and letters for panels, or -letter for a part of a text."
    )
    place: str = Field(min_length=1, description="Place in the paper.")
    shows: str = Field(min_length=1, description="Subject of the figure or table.")
    numbers: str = Field(min_length=1, description="Results of the paper.")
    experiment: Name | None = Field(None, description="Experiment of ours that repeats it.")
    also: tuple[Name, ...] = Field((), description="Further experiments with claims about it.")
    figures: dict[str, str] = Field(
        {}, description="Figures of ours in its shape: name → pattern of the names of its drawings."
    )
    answer: str = Field("", description="Our numbers, for a row that needs no run, such as lines of code.")
    differs: str = Field("", description="Differences from the paper's conditions.")
    missing: str = Field("", description="Missing piece without which the row, or a part of it, cannot be repeated.")
    cannot: str = Field("", description="Reason why a lab cannot repeat the row.")
    unclaimed: str = Field("", description="Reason why no claim is about the row.")
    why: str = Field("", description="Explanation of results that differ from the paper's.")

    @model_validator(mode="after")
    def _one_state(self) -> Self:
        if self.cannot and (self.experiment or self.missing):
            raise ValueError("'cannot' excludes 'experiment' and 'missing'")
        if self.answer and (self.experiment or self.missing or self.cannot):
            raise ValueError("'answer' excludes 'experiment', 'missing' and 'cannot'")
        if not (self.cannot or self.experiment or self.missing or self.answer):
            raise ValueError("'experiment', 'answer', 'missing' or 'cannot' is needed")
        if (self.figures or self.also) and not self.experiment:
            raise ValueError(f"'{'figures' if self.figures else 'also'}' needs 'experiment'")
        return self

    @property
    def experiments(self) -> tuple[str, ...]:
        """Return the experiments that repeat the row, the one with its figures first."""
        return (self.experiment, *self.also) if self.experiment else ()


class PaperFile(FileModel):
    """A paper: its rows, and the forms of the experiments that repeat them."""

    model_config = ConfigDict(title="mplab paper")

    mplab_paper: Annotated[int, format_number("mplab_paper", FORMAT), WithJsonSchema({"const": FORMAT})] = Field(
        description="Format of this file."
    )
    paper: Name = Field(description="Short name of the paper.")
    forms: dict[Name, FormsFile] = Field(
        {}, description="Experiment → its forms. Each experiment is in the file of one paper only."
    )
    rows: tuple[RowFile, ...] = Field(min_length=1, description="Figures, tables and numbers, in the paper's order.")


@dataclass(frozen=True)
class Paper:
    """A paper of the catalogue."""

    name: str
    rows: tuple[RowFile, ...]


@dataclass(frozen=True)
class Catalogue:
    """The papers, and the forms of all experiments that repeat rows of them.

    Attributes:
        papers: the papers, sorted by name.
        forms: experiment → form → keys of an experiment file that replace the experiment's.
    """

    papers: tuple[Paper, ...]
    forms: Mapping[str, Mapping[Form, Mapping[str, Any]]]

    @property
    def rows(self) -> tuple[RowFile, ...]:
        """Return the rows of all papers."""
        return tuple(row for paper in self.papers for row in paper.rows)

    @property
    def experiments(self) -> tuple[str, ...]:
        """Return the experiments that rows name, in the order of the rows."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.experiments))

    def of_experiment(self, experiment: str) -> tuple[RowFile, ...]:
        """Return the rows that an experiment repeats."""
        return tuple(row for row in self.rows if experiment in row.experiments)

    def chosen(self, names: tuple[str, ...]) -> tuple[RowFile, ...]:
        """Return the rows that `names` names by paper or by id, in the catalogue's order; without names, all.

        Raises:
            InputError: a name is neither a paper nor a row.
        """
        by_name = {paper.name: {row.id for row in paper.rows} for paper in self.papers}
        by_name |= {row.id: {row.id} for row in self.rows}
        for name in names:
            if name not in by_name:
                hint = did_you_mean(name, by_name)
                raise InputError(f"unknown paper or figure {show(name)}.{hint} 'mplab papers list' lists them")
        wanted = {row for name in names for row in by_name[name]}
        return tuple(row for row in self.rows if not names or row.id in wanted)


def load_catalogue(folder: Path = CATALOGUE, experiments: Path = EXPERIMENTS) -> Catalogue:
    """Read all papers of a folder, ``PAPER.yaml``.

    Args:
        folder: folder of the catalogue.
        experiments: folder of the experiment files that the rows name.

    Raises:
        InputError: a file is wrong; the message has one line, with file and line, for each problem.
    """
    papers: list[Paper] = []
    forms: dict[str, dict[Form, dict[str, Any]]] = {}
    lines: list[str] = []
    named: dict[str, tuple[Checker, int]] = {}
    for path in sorted(folder.glob("*.yaml")):
        document = load_yaml(path)
        check_kind(document, "paper")
        checker = Checker(document)
        file = checker.model(PaperFile, document.data)
        if file is not None:
            _check(checker, file, path, experiments, forms)
            papers.append(Paper(file.paper, file.rows))
            forms |= {name: _forms(document, name) for name in file.forms}
            for index, row in enumerate(file.rows):
                for name in row.experiments:
                    named.setdefault(name, (checker, index))
        lines += checker.lines()
    if not lines:
        for experiment, (checker, index) in named.items():
            if experiment not in forms:
                checker.add(("rows", index, "experiment"), f"'{experiment}' has no forms: add it to 'forms'")
                lines += checker.lines()
    raise_lines(list(dict.fromkeys(lines)))
    return Catalogue(tuple(papers), forms)


def _check(
    checker: Checker, file: PaperFile, path: Path, experiments: Path, forms: Mapping[str, Mapping[Form, object]]
) -> None:
    if file.paper != path.stem:
        checker.add(("paper",), f"found '{file.paper}', the name of the file is needed: '{path.stem}'")
    known = [experiment.stem for experiment in sorted(experiments.glob("*.yaml"))]
    for name in file.forms:
        if name in forms:
            checker.add(("forms", name), f"the forms of '{name}' are in the file of another paper, too")
        if name not in known:
            checker.add(("forms", name), unknown("experiment", name, known))
    ids: set[str] = set()
    for index, row in enumerate(file.rows):
        if row.id in ids:
            checker.add(("rows", index, "id"), f"'{row.id}' is there twice")
        ids.add(row.id)
        if not row.id.startswith(f"{file.paper}-"):
            checker.add(("rows", index, "id"), f"'{row.id}' is not of the paper '{file.paper}'")
        for name in row.experiments:
            if name not in known:
                key = "experiment" if name == row.experiment else "also"
                checker.add(("rows", index, key), unknown("experiment", name, known))


def _forms(document: Document, name: str) -> dict[Form, dict[str, Any]]:
    """Return form → keys of the experiment file, as the catalogue has them."""
    return {form: dict(document.data["forms"][name][form]) for form in FORMS}
