"""Extract the compact result of a run, with its figures as SVG, for the page of the papers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from mplab.analysis.errors import AnalysisError
from mplab.analysis.figures.catalog import WrittenFigure, load, write_figures
from mplab.analysis.pipeline import statistics_of
from mplab.analysis.record.run import Run, read_run
from mplab.analysis.report.headline import flagged_cells
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.verdicts.claims import Outcome, outcomes
from mplab.analysis.verdicts.wording import claimed_words
from mplab.base.errors import InputError
from mplab.base.files import explained, replace
from mplab.format.experiment import SmallestEffect
from mplab.format.finding import ClaimFinding
from mplab.format.manifest import Manifest
from mplab.format.paperresult import (
    FIGURES,
    RESULTS,
    ClaimResult,
    FigureResult,
    GroupResult,
    PaperResult,
)
from mplab.papers.forms import TAG
from mplab.userfiles.papers.paper import FORMS, Catalogue, RowFile

LARGEST_BYTES = 80_000
"""Size of a drawing beyond which it is not kept."""
MOST_DRAWINGS = 3
"""Maximum number of drawings of one figure that are kept."""

_VERSIONS = ("mplab", "linkem", "mpflex", "mptrace", "chromium", "firefox", "nginx", "python")
_TAG = re.compile(r"<[A-Za-z][^<>]*>")
_PLACE = re.compile(r'(?<=\s)(?:d|x|y|points|transform)="[^"]*"')
_TRANSLATE = re.compile(r"translate\([^()]*\)")
_NUMBER = re.compile(r"(?<![\d.])-?\d+\.\d{2,}(?![\d.eE])")


@dataclass(frozen=True)
class CompactResult:
    """The compact result of a run, and its drawings: file name → SVG."""

    result: PaperResult
    drawings: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the name of the result's file."""
        return f"{self.result.experiment}.{self.result.form}.json"


def form_of(manifest: Manifest) -> Literal["quick", "full", "file"]:
    """Return the form of a run, from the tag that `mplab.papers.forms` gives it."""
    return next((form for form in FORMS if f"{TAG}{form}" in manifest.experiment.tags), "file")


def newest_runs(runs: Path, catalogue: Catalogue) -> list[Path]:
    """Return the newest complete run of each experiment of the catalogue in each form, in a folder of runs."""
    newest: dict[tuple[str, str], Path] = {}
    for path in sorted(runs.glob("*/manifest.json"), key=lambda path: path.parent.name):
        try:
            run = read_run(path.parent)
        except AnalysisError:
            continue
        whole = run.finished and not run.manifest.plan.chosen
        if run.manifest.experiment.name in catalogue.experiments and whole:
            newest[run.manifest.experiment.name, form_of(run.manifest)] = path.parent
    return sorted(newest.values())


def collect(run_dir: Path, catalogue: Catalogue) -> CompactResult:
    """Extract the compact result of a run, with its drawings. Raises as `measure` does."""
    result, rows, analysis = _measured(run_dir, catalogue)
    figures, drawings = _figures(run_dir, rows, analysis, f"{result.experiment}.{result.form}")
    return CompactResult(result.model_copy(update={"figures": tuple(figures)}), drawings)


def measure(run_dir: Path, catalogue: Catalogue) -> PaperResult:
    """Extract the result of a run without figures.

    Args:
        run_dir: the run directory; tables of cells that it lacks are made.
        catalogue: the catalogue, whose rows name the claims.

    Raises:
        InputError: no row of the catalogue names the run's experiment, or the run has not finished.
        AnalysisError: the run cannot be read or analysed.
    """
    return _measured(run_dir, catalogue)[0]


def _measured(run_dir: Path, catalogue: Catalogue) -> tuple[PaperResult, Sequence[RowFile], Analysis]:
    run = read_run(run_dir)
    experiment = run.manifest.experiment
    rows = catalogue.of_experiment(experiment.name)
    if not rows:
        raise InputError(f"{run_dir}: no row of the papers names its experiment '{experiment.name}'")
    if not run.finished:
        raise InputError(f"{run_dir}: the run has not finished. 'mplab resume {run_dir.name}' continues it")
    analysis = statistics_of(run_dir)
    ids = {row.id for row in rows}
    claimed = [outcome for outcome in outcomes(analysis) if outcome.claim.figure in ids]
    result = PaperResult(
        experiment=experiment.name,
        form=form_of(run.manifest),
        run=run.manifest.run_id,
        started=run.manifest.started,
        duration_s=None if run.duration_s is None else round(run.duration_s),
        seed=experiment.seed,
        repetitions=experiment.repetitions,
        cells={outcome: count for outcome, count in run.counts.items() if count},
        flagged=tuple(sorted(flagged_cells(run))),
        not_ok=tuple(cell.id for cell in run.cells if not cell.ok),
        versions=_versions(run),
        ended=run.cut.reason if run.cut is not None else "",
        claims=tuple(_claim(outcome, experiment.smallest_effect) for outcome in claimed),
        groups=tuple(_groups(analysis, {outcome.claim.metric for outcome in claimed})),
    )
    return result, rows, analysis


def write(collected: CompactResult, folder: Path) -> list[Path]:
    """Write a result and its drawings below `folder`; drawings of an earlier run in the same form are removed.

    Raises:
        MplabError: a file cannot be written.
    """
    stem = collected.name.removesuffix(".json")
    files = {folder / FIGURES / name: svg for name, svg in collected.drawings.items()}
    content = collected.result.model_dump(mode="json", exclude_defaults=True)
    files[folder / RESULTS / collected.name] = compact_json({"format": collected.result.format, **content})
    with explained(folder):
        for old in (folder / FIGURES).glob(f"{stem}.*.svg"):
            old.unlink()
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, text.encode())
    return list(files)


def compact_json(content: Mapping[str, object]) -> str:
    """Return a JSON object with one line for each key, and for each item of a list in it, so that changes are small."""
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n".join(f"  {_json(item)}" for item in value)
            lines.append(f" {_json(key)}: [\n{items}\n ]")
        else:
            lines.append(f" {_json(key)}: {_json(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _claim(outcome: Outcome, smallest: SmallestEffect) -> ClaimResult:
    claim = outcome.claim
    return ClaimResult(
        figure=claim.figure,
        text=claim.text,
        metric=claim.metric,
        transport=claim.transport,
        claimed=claimed_words(claim, smallest),
        width=claim.width,
        groups=claim.groups,
        found=tuple(_finding(finding) for finding in outcome.findings),
    )


def _finding(finding: ClaimFinding) -> ClaimFinding:
    """Return a finding with rounded numbers, and without the correction for its run."""
    rounded = {
        "estimate": _rounded(finding.estimate),
        "interval": finding.interval and tuple(map(_rounded, finding.interval)),
        "p": _rounded(finding.p),
    }
    return finding.model_copy(update={**rounded, "values": 0, "p_corrected": None, "confirmed": False})


def _rounded(value: float | None) -> float | None:
    """Return a value with six significant digits."""
    return None if value is None else float(f"{value:.6g}")


def _groups(analysis: Analysis, claimed: set[str]) -> Iterator[GroupResult]:
    """Yield the values of the headline metrics and of those that claims are about."""
    for group in analysis.groups:
        if group.metric.headline or group.metric.name in claimed:
            yield GroupResult(
                scenario=group.scenario,
                link=group.link,
                metric=group.metric.name,
                unit=group.metric.unit,
                labels=dict(group.labels),
                values={
                    series.transport.label: {value.block: float(f"{value.value:.6g}") for value in series.values}
                    for series in group.measured
                },
            )


def _versions(run: Run) -> dict[str, str]:
    manifest = run.manifest
    versions = {name: str(manifest.versions[name]) for name in _VERSIONS if name in manifest.versions}
    return {**versions, "kernel": manifest.host.kernel} if manifest.host.kernel else versions


def _figures(
    run_dir: Path, rows: Sequence[RowFile], analysis: Analysis, stem: str
) -> tuple[list[FigureResult], dict[str, str]]:
    """Return the drawings that rows name, and file name → SVG of those that are small enough."""
    patterns: dict[str, list[str]] = {}
    for row in rows:
        for name, pattern in row.figures.items():
            patterns.setdefault(name, []).append(pattern)
    if not patterns:
        return [], {}
    figures: list[FigureResult] = []
    drawings: dict[str, str] = {}
    with TemporaryDirectory(prefix="mplab-papers-") as folder:
        written, _ = write_figures(load(run_dir), list(patterns), Path(folder), statistics=lambda: analysis)
        for figure in written:
            drawing = figure.files[0].stem
            if any(fnmatchcase(drawing, pattern) for pattern in patterns[figure.name]):
                svg = small_svg(figure.files[0].read_text(encoding="utf-8"))
                file = f"{stem}.{drawing}.svg"
                fits = len(svg.encode()) <= LARGEST_BYTES and _count(figures, figure) < MOST_DRAWINGS
                if fits:
                    drawings[file] = svg
                figures.append(
                    FigureResult(
                        name=figure.name,
                        drawing=drawing,
                        title=figure.drawing.title,
                        caption=figure.drawing.caption,
                        file=file if fits else None,
                    )
                )
    return figures, drawings


def _count(figures: Sequence[FigureResult], figure: WrittenFigure) -> int:
    return sum(1 for other in figures if other.name == figure.name)


def small_svg(svg: str) -> str:
    """Return a drawing with coordinates rounded to one decimal; keep texts, styles, sizes and scales."""
    return _TAG.sub(lambda tag: _PLACE.sub(_placed, tag[0]), svg)


def _placed(attribute: re.Match[str]) -> str:
    """Return an attribute with its coordinates rounded; of ``transform``, only those of translations."""
    text = attribute[0]
    if text.startswith("transform"):
        return _TRANSLATE.sub(lambda translation: _coarse(translation[0]), text)
    return _coarse(text)


def _coarse(coordinates: str) -> str:
    return _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), coordinates)
