"""Write the folder ``report`` of a run: the page, figures (SVG), data (CSV) and ``summary.json``."""

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from mplab.analysis.figures.style import Drawing, inline
from mplab.analysis.files import csv_text, write_json, write_text
from mplab.analysis.metric import describe_limits
from mplab.analysis.record.run import Run
from mplab.analysis.report import data, view
from mplab.analysis.report.cellindex import INDEX, Anchors, cell_tables
from mplab.analysis.report.cellpage import render_pages
from mplab.analysis.report.data import PAGE_COLUMNS
from mplab.analysis.report.headline import HeadlineAnswer
from mplab.analysis.report.htmlpage import GLOSSARY, STYLE_SHEET, cell_css, page_css, page_environment, page_script
from mplab.analysis.report.places import FOLDER, page_name
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

FIRST_PAGE = "index.html"
SCENARIOS = "scenarios"
"""Folder of the pages of scenarios in ``report``."""

MOST_SECTIONS = 3
"""Maximum number of sections (scenario and link condition) on the first page; with more, each scenario has a page."""


@dataclass(frozen=True)
class Section:
    """The section of the page for a scenario under a link condition: its tables and figures."""

    anchor: str
    scenario: str
    link: str
    tables: tuple[view.MetricTable, ...]
    figures: tuple[Drawing, ...]
    traced: view.TracedTable | None = None

    def parts(self, *, headline: bool) -> list[tuple[view.MetricTable, list[Drawing]]]:
        """Return (table, figures) of each headline metric, or with ``headline=False`` of each other metric."""
        return [
            (table, [figure for figure in self.figures if figure.metric == table.metric])
            for table in self.tables
            if table.headline is headline
        ]


@dataclass(frozen=True)
class ScenarioPage:
    """The page of a scenario in the folder `SCENARIOS`, with a section for each of its link conditions."""

    file: str
    title: str
    sections: tuple[Section, ...]
    answers: tuple[HeadlineAnswer, ...]

    @property
    def metrics(self) -> int:
        """Return the number of metrics of the scenario."""
        return len({table.metric for section in self.sections for table in section.tables})


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
    _write_cells(folder, analysis)
    pages = render(analysis, conclusions, drawings)
    for name, page in pages.items():
        write_text(folder / name, page)
    _remove_others(folder / SCENARIOS, {Path(name).name for name in pages if name.startswith(f"{SCENARIOS}/")})


def _write_cells(folder: Path, analysis: Analysis) -> None:
    """Write the list of all cells, the page of each cell, and the style sheet that these pages share."""
    environment = page_environment()
    environment.filters["plural"] = plural
    run = analysis.run
    write_text(folder / STYLE_SHEET, page_css() + cell_css())
    pages = environment.get_template("cells.html.j2").render(
        run=run,
        title=run.manifest.experiment.title or run.manifest.experiment.name,
        tables=cell_tables(analysis),
        anchors=Anchors(analysis),
        script=page_script(),
        several_links=analysis.several_links,
    )
    write_text(folder / FOLDER / INDEX, pages)
    for name, page in render_pages(analysis, environment):
        write_text(folder / FOLDER / name, page)
    _remove_others(folder / FOLDER, {INDEX, *(page_name(cell.id) for cell in run.cells)})


def render(analysis: Analysis, conclusions: Conclusions, drawings: Sequence[Drawing]) -> Mapping[str, str]:
    """Return the pages of the report as HTML: path in the folder ``report`` → text; the first page is the last item.

    `FIRST_PAGE` includes style sheet and figures. A run with more than `MOST_SECTIONS` sections has also a page for
    each scenario.
    """
    sections = list(_sections(analysis, conclusions, drawings))
    pages = _pages(sections, conclusions.answers) if len(sections) > MOST_SECTIONS else []
    environment = page_environment()
    environment.filters["plural"] = plural
    citations = Citations()
    environment.globals["cite"], environment.globals["sources"] = citations.cite, citations.sources
    content = _content(analysis, conclusions, drawings) | {
        "pages": pages,
        "page_of": {page.title: page.file for page in pages},
    }
    rendered = {}
    for page in pages:
        text = _page(environment, analysis, content, sections=page.sections, only=page, root="../")
        rendered[f"{SCENARIOS}/{page.file}"] = text
    # The first page is last: it lists the sources that any page cites.
    rendered[FIRST_PAGE] = _page(environment, analysis, content, sections=[] if pages else sections)
    return rendered


def _page(
    environment: Environment,
    analysis: Analysis,
    content: Mapping[str, object],
    *,
    sections: Sequence[Section],
    only: ScenarioPage | None = None,
    root: str = "",
) -> str:
    """Return a page of the report: the first one, or that of a scenario (``only``).

    ``root`` is the path from the page's folder to the folder ``report``: "" or ``../``.
    """
    cells, anchors = {cell.id for cell in analysis.run.cells}, Anchors(analysis)

    def cell_link(cell: str) -> Markup:
        name = Markup("<code>{}</code>").format(cell)
        page = f"{root}{FOLDER}/{page_name(cell)}"
        return Markup('<a href="{}">{}</a>').format(page, name) if cell in cells else name

    def list_of(scenario: str, link: str, transport: str) -> str:
        return f"{root}{FOLDER}/{INDEX}#{anchors.of(scenario, link, transport)}"

    def list_of_link(link: str) -> str:
        return f"{root}{FOLDER}/{INDEX}#{anchors.of_link(link)}"

    environment.globals.update(
        svg=lambda drawing: Markup(_linked(inline(drawing), cells, root)),  # noqa: S704 - our own figure
        cell_link=cell_link,
        list_of=list_of,
        list_of_link=list_of_link,
    )
    return environment.get_template("report.html.j2").render(content, sections=sections, only=only, root=root)


_MARK_OF_CELL = re.compile(r'(<g class="cell" data-cell="([^"]*)">)(.*?)(</g>)', re.DOTALL)


def _linked(svg: str, cells: Collection[str], root: str) -> str:
    """Make each mark of a figure that names its cell a link to the page of this cell.

    The tab key skips these links: they can be hundreds, and the list of cells has them all.
    """

    def link(match: re.Match[str]) -> str:
        start, cell, mark, end = match.groups()
        page = f"{root}{FOLDER}/{page_name(cell)}"
        return f'{start}<a href="{page}" tabindex="-1">{mark}</a>{end}' if cell in cells else match[0]

    return _MARK_OF_CELL.sub(link, svg)


def _content(analysis: Analysis, conclusions: Conclusions, drawings: Sequence[Drawing]) -> dict[str, object]:
    """Return what all pages of the report can show, by its name in the template."""
    run = analysis.run
    counts = run.counts
    return {
        "css": page_css(),
        "script": page_script(),
        "date": run.manifest.started[:10],
        "citation": citation(run),
        "run": run,
        "experiment": run.manifest.experiment,
        "title": run.manifest.experiment.title or run.manifest.experiment.name,
        "counts": [(o, n, OUTCOME_WORDS.get(o, "")) for o, n in counts.items() if n],
        "planned": len(run.cells),
        "duration": duration(run.duration_s),
        "warnings": conclusions.warnings,
        "answers": conclusions.answers,
        "places": sorted({verdict.conditions for answer in conclusions.answers for verdict in answer.verdicts}),
        "headline_rows": sum(len(answer.verdicts) for answer in conclusions.answers),
        "claims": view.claim_tables(analysis, conclusions.claims),
        "budgets": conclusions.budgets,
        "several_links": analysis.several_links,
        "figures": {
            name: [drawing for drawing in drawings if drawing.section == name]
            for name in ("gain", "share", "traces", "links", "timeline", "paper")
        },
        "circumstances": view.circumstances(run),
        "scenarios": view.scenario_lines(run),
        "transports": view.transport_lines(run),
        "link_rows": view.link_rows(run),
        "link_verdict": view.link_verdict(run),
        "not_ok": view.cells_not_ok(run),
        "retries": view.retries(run),
        "cell_warnings": view.cell_warnings(run),
        "problems": analysis.problems,
        "data_stems": data.STEMS,
        "statistics": GLOSSARY,
        "contrast_columns": PAGE_COLUMNS,
        "metrics": _glossary(analysis),
    }


def _pages(sections: Sequence[Section], answers: Sequence[HeadlineAnswer]) -> list[ScenarioPage]:
    """Return a page for each scenario, with its sections and answers."""
    pages = []
    for number, name in enumerate(dict.fromkeys(section.scenario for section in sections), 1):
        own = tuple(answer for answer in answers if answer.scenario == name)
        inside = tuple(section for section in sections if section.scenario == name)
        pages.append(ScenarioPage(f"scenario-{number}.html", name, inside, own))
    return pages


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
    tables, traced = view.metric_tables(analysis, conclusions.findings), view.traced_tables(analysis)
    for number, (scenario, link) in enumerate(dict.fromkeys((t.scenario, t.link) for t in tables), 1):
        yield Section(
            anchor=f"scenario-{number}",
            scenario=scenario,
            link=link,
            tables=tuple(t for t in tables if (t.scenario, t.link) == (scenario, link)),
            figures=tuple(
                d for d in drawings if d.section == "distribution" and (d.scenario, d.link) == (scenario, link)
            ),
            traced=traced.get((scenario, link)),
        )


def _glossary(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return (scenario, title, unit, better direction, limits, source) of each metric in each scenario."""
    rows = {}
    for group in (group for group in analysis.groups if not group.metric.traced):
        metric = group.metric
        facts = (metric.title, metric.unit, metric.better, describe_limits(metric), metric.source)
        rows[group.scenario, metric.name] = (group.scenario, *facts)
    return list(rows.values())


def _remove_others(folder: Path, keep: set[str]) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name in keep:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
