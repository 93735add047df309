"""Check references to the labels of an experiment file: combinations, claims, stop rules."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mplab.base.suggest import unknown
from mplab.format.claim import LINKS
from mplab.format.experiment import FACTORS, Factor, Matrix
from mplab.userfiles.experiments.claims import ClaimFile, TrendFile, links_of
from mplab.userfiles.experiments.experiment import ExperimentFile
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import KeyPath


@dataclass(frozen=True)
class Names:
    """Labels of an experiment's transports and scenarios, and names of its link conditions."""

    transports: Sequence[str]
    scenarios: Sequence[str]
    links: Sequence[str]


def check_names(checker: Checker, file: ExperimentFile, matrix: Matrix, names: Names) -> None:
    """Add a problem to `checker` for each reference to an unknown or duplicate label."""
    _check_matrix(checker, file, matrix, names)
    _check_claims(checker, file, names)
    _check_interval(checker, file, names)


def _check_matrix(checker: Checker, file: ExperimentFile, matrix: Matrix, names: Names) -> None:
    labels: dict[Factor, Sequence[str]] = {
        "scenario": names.scenarios,
        "transport": names.transports,
        "link": names.links,
    }
    for path, text in _matrix_problems(matrix, labels):
        checker.add(path, text)
    for key, entries in (("grouped_by", file.grouped_by), ("tags", file.tags)):
        for index, word in enumerate(entries):
            if word in entries[:index]:
                checker.add((key, index), f"'{word}' is there twice")


def _check_claims(checker: Checker, file: ExperimentFile, names: Names) -> None:
    for index, claim in enumerate(file.claims):
        path: KeyPath = ("claims", index)
        for key, kind, known in (
            ("transport", "transport label", names.transports),
            ("against_link", "link", names.links),
            ("against_scenario", "scenario label", names.scenarios),
        ):
            if name := getattr(claim, key):
                _check_label(checker, (*path, key), kind, name, known)
        _check_labels(checker, (*path, "against"), "transport label", claim.against, names.transports)
        if claim.correlation is not None:
            others, key_path = claim.correlation.transports, (*path, "correlation", "transports")
            _check_labels(checker, key_path, "transport label", others, names.transports)
        _check_labels(checker, (*path, "scenarios"), "scenario label", claim.scenarios, names.scenarios)
        for position, pattern in enumerate(claim.links):
            if not links_of((pattern,), names.links):
                checker.add((*path, "links", position), unknown("link", pattern, names.links))
        if claim.trend is not None and (text := _at_problem(claim, claim.trend, names)):
            checker.add((*path, "trend", "at"), text)


def _at_problem(claim: ClaimFile, trend: TrendFile, names: Names) -> str:
    """Return the error message on the positions of a trend's points; "" without error."""
    if not trend.at:
        return ""
    if trend.along == LINKS:
        points, kind = len(links_of(claim.links, names.links) if claim.links else names.links), "link conditions"
    elif trend.along not in claim.labels:
        return f"the values of '{trend.along}' must be known for their positions. Give them under 'labels'"
    else:
        points, kind = len({*claim.labels[trend.along]}), f"values of '{trend.along}'"
    return f"{len(trend.at)} positions for {points} {kind}: one for each is needed" if points != len(trend.at) else ""


def _check_interval(checker: Checker, file: ExperimentFile, names: Names) -> None:
    rule, path = file.stop.interval, ("stop", "interval")
    if rule is None:
        return
    _check_labels(checker, (*path, "scenarios"), "scenario label", rule.scenarios, names.scenarios)
    _check_labels(checker, (*path, "links"), "link", rule.links, names.links)
    if rule.after >= file.repetitions:
        text = (
            f"{rule.after} blocks of {file.repetitions} 'repetitions': the rule can never end the run. "
            "Give fewer blocks, or more 'repetitions'"
        )
        checker.add((*path, "after"), text)
    if rule.of == "differences" and len(names.transports) == 1:
        checker.add(path, "'of: differences' compares transports, and there is only one. Use 'of: medians'")


def _check_labels(checker: Checker, path: KeyPath, kind: str, labels: Sequence[str], known: Sequence[str]) -> None:
    for index, label in enumerate(labels):
        _check_label(checker, (*path, index), kind, label, known)


def _check_label(checker: Checker, path: KeyPath, kind: str, label: str, known: Sequence[str]) -> None:
    if label not in known:
        checker.add(path, unknown(kind, label, known))


def _matrix_problems(
    matrix: Matrix, labels: Mapping[Factor, Sequence[str]]
) -> Iterable[tuple[tuple[str | int, ...], str]]:
    """Yield path and text of each problem of a matrix: patterns that match no label, and labels without any cell.

    Args:
        matrix: as in the file.
        labels: labels of the experiment's scenarios, transports and links.
    """
    unmatched = False
    for key, entries in (("include", matrix.include), ("exclude", matrix.exclude)):
        for index, cells in enumerate(entries):
            for factor in FACTORS:
                for pattern in getattr(cells, factor):
                    if not any(fnmatchcase(label, pattern) for label in labels[factor]):
                        unmatched = True
                        yield (key, index, factor), unknown(f"{factor} of this experiment", pattern, labels[factor])
    if unmatched or not all(labels[factor] for factor in FACTORS):
        return
    combinations = [
        (scenario, transport, link)
        for scenario in labels["scenario"]
        for transport in labels["transport"]
        for link in labels["link"]
    ]
    left = [combination for combination in combinations if matrix.has(combination)]
    key = "exclude" if matrix.exclude else "include"
    for position, factor in enumerate(FACTORS):
        there = {combination[position] for combination in left}
        for label in labels[factor]:
            if label not in there:
                yield (key,), f"{factor} '{label}' is left without any cell: take it out of '{factor}s'"
