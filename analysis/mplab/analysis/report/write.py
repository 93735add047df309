"""Write the folder ``report`` of a run: the page, figures (SVG), data (CSV) and ``summary.json``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from mplab.analysis.figures.style import Drawing, inline
from mplab.analysis.files import csv_text, write_json, write_text
from mplab.analysis.metric import describe_limits
from mplab.analysis.record.run import Run
from mplab.analysis.report import data, view
from mplab.analysis.report.data import PAGE_COLUMNS
from mplab.analysis.report.htmlpage import GLOSSARY, page_css, page_environment, page_script
from mplab.analysis.report.sources import Citations
from mplab.analysis.report.summary import Conclusions, conclude, summary_content
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import duration, plural

OUTCOME_WORDS = {
    "ok": "counted",
    "invalid": "the link or the transport was not the requested one",
    "failed": "not completed",
    "partial": "cut off",
    "missing": "not run yet",
}


MOST_ANSWERS = 6
"""Number of answers up to which all of them are unfolded on the page."""


@dataclass(frozen=True)
class Section:
    """The section of the page for a scenario under a link condition: its tables and figures."""

    anchor: str
    scenario: str
    link: str
    tables: tuple[view.MetricTable, ...]
    figures: tuple[Drawing, ...]

    def parts(self, *, headline: bool) -> list[tuple[view.MetricTable, list[Drawing]]]:
        """Return (table, figures) of each headline metric, or with ``headline=False`` of each other metric."""
        return [
            (table, [figure for figure in self.figures if figure.metric == table.metric])
            for table in self.tables
            if table.headline is headline
        ]


def write_report(analysis: Analysis, drawings: Sequence[Drawing]) -> None:
    """Write the run's report, and remove files of an earlier report that the new one does not have.

    Raises:
        BudgetError: a limit cannot be converted to its metric's unit.
    """
    folder, conclusions = analysis.run.directory / "report", conclude(analysis)
    for drawing in drawings:
        write_text(folder / "figures" / f"{drawing.stem}.svg", drawing.svg)
        write_text(folder / "data" / f"{drawing.stem}.csv", csv_text(drawing.columns, drawing.rows))
    for stem, (columns, rows) in data.tables(analysis, conclusions.claims).items():
        write_text(folder / "data" / f"{stem}.csv", csv_text(columns, rows))
    stems = {drawing.stem for drawing in drawings}
    _remove_others(folder / "figures", {f"{stem}.svg" for stem in stems})
    _remove_others(folder / "data", {f"{stem}.csv" for stem in stems | set(data.STEMS)})
    write_json(folder / "summary.json", summary_content(analysis, conclusions))
    write_text(folder / "index.html", render(analysis, conclusions, drawings))


def render(analysis: Analysis, conclusions: Conclusions, drawings: Sequence[Drawing]) -> str:
    """Return the page of the report as HTML, which includes style sheet and figures."""
    environment = page_environment()
    environment.globals["svg"] = lambda drawing: Markup(inline(drawing))  # noqa: S704 - our own figure
    environment.filters["plural"] = plural
    environment.globals["MOST_ANSWERS"] = MOST_ANSWERS
    citations = Citations()
    environment.globals["cite"], environment.globals["sources"] = citations.cite, citations.sources
    run = analysis.run
    counts = run.counts
    return environment.get_template("report.html.j2").render(
        css=page_css(),
        script=page_script(),
        date=run.manifest.started[:10],
        citation=citation(run),
        run=run,
        experiment=run.manifest.experiment,
        title=run.manifest.experiment.title or run.manifest.experiment.name,
        counts=[(o, n, OUTCOME_WORDS.get(o, "")) for o, n in counts.items() if n],
        planned=len(run.cells),
        duration=duration(run.duration_s),
        warnings=conclusions.warnings,
        answers=conclusions.answers,
        places=sorted({verdict.conditions for answer in conclusions.answers for verdict in answer.verdicts}),
        headline_rows=sum(len(answer.verdicts) for answer in conclusions.answers),
        claims=view.claim_tables(analysis, conclusions.claims),
        budgets=conclusions.budgets,
        several_links=analysis.several_links,
        sections=list(_sections(analysis, conclusions, drawings)),
        figures={
            name: [drawing for drawing in drawings if drawing.section == name]
            for name in ("gain", "share", "traces", "links", "timeline", "paper")
        },
        circumstances=view.circumstances(run),
        scenarios=view.scenario_lines(run),
        transports=view.transport_lines(run),
        link_rows=view.link_rows(run),
        link_verdict=view.link_verdict(run),
        not_ok=view.cells_not_ok(run),
        retries=view.retries(run),
        cell_warnings=view.cell_warnings(run),
        problems=analysis.problems,
        data_stems=data.STEMS,
        statistics=GLOSSARY,
        contrast_columns=PAGE_COLUMNS,
        metrics=_glossary(analysis),
    )


def citation(run: Run) -> str:
    """Return the reference of a run's report, for a list of references."""
    manifest = run.manifest
    title = (manifest.experiment.title or manifest.experiment.name).rstrip(".")
    version = manifest.versions.get("mplab", "")
    return (
        f"The mplab developers. mplab{f' {version}' if version else ''}: automated experiments on multipath transport "
        f"for phones. Software, {manifest.started[:4] or 'no date'}. Report of run {manifest.run_id}: {title}. "
        f"Seed {manifest.experiment.seed}."
    )


def _sections(analysis: Analysis, conclusions: Conclusions, drawings: Sequence[Drawing]) -> Iterator[Section]:
    tables = view.metric_tables(analysis, conclusions.findings)
    for number, (scenario, link) in enumerate(dict.fromkeys((t.scenario, t.link) for t in tables), 1):
        yield Section(
            anchor=f"scenario-{number}",
            scenario=scenario,
            link=link,
            tables=tuple(t for t in tables if (t.scenario, t.link) == (scenario, link)),
            figures=tuple(
                d for d in drawings if d.section == "distribution" and (d.scenario, d.link) == (scenario, link)
            ),
        )


def _glossary(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return (scenario, title, unit, better direction, limits, source) of each metric in each scenario."""
    rows = {}
    for group in analysis.groups:
        metric = group.metric
        facts = (metric.title, metric.unit, metric.better, describe_limits(metric), metric.source)
        rows[group.scenario, metric.name] = (group.scenario, *facts)
    return list(rows.values())


def _remove_others(folder: Path, keep: set[str]) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name not in keep:
                path.unlink()
