"""Analyse a run directory: tables → scores → statistics → figures → report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mplab.analysis.errors import MetricConflictError, ScenarioMissingError
from mplab.analysis.figures.catalog import draw_all
from mplab.analysis.figures.style import Drawing
from mplab.analysis.metric import Metric
from mplab.analysis.record.decode import AnalysisProblem, make_tables
from mplab.analysis.record.run import Cell, Run, check_folders, read_run
from mplab.analysis.report.summary import SummaryRow, summary_rows
from mplab.analysis.report.write import write_report
from mplab.analysis.results.reported import read_summary
from mplab.analysis.scores.metrics import scoring_of
from mplab.analysis.scores.plugins import ScoringPlugin, register
from mplab.analysis.scores.scoring import CellScores, score_cell
from mplab.analysis.scores.shares import interface_shares
from mplab.analysis.statistics.summaries import Analysis, summarise

STEPS = ("tables", "scores", "statistics", "figures", "report")


@dataclass(frozen=True)
class Progress:
    """Progress of one of `STEPS`.

    ``done`` and ``total`` count cells in the steps ``tables`` and ``scores``, and are 1 for ``statistics`` and
    ``report``. In ``figures``, both are the number of figures that are already drawn, since their total is not known.
    """

    step: str
    done: int
    total: int


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class CellResult:
    """Problems and scores of a cell, returned by `analyze_cell`; the cell's folder has its tables and scores."""

    cell: str
    problems: tuple[AnalysisProblem, ...] = ()
    scores: CellScores | None = None


def analyze(run_dir: Path, *, progress: Listener | None = None, mptrace: Path | None = None) -> None:
    """Make tables, scores, figures and report of a complete or incomplete run; the same run gives the same bytes.

    Args:
        run_dir: the run directory; ``cells/*/tables``, ``cells/*/scores.json`` and ``report`` in it are replaced.
        progress: called after each cell, each figure, and the steps ``statistics`` and ``report``.
        mptrace: path of the program; None: see `mplab.analysis.record.decode.find_mptrace`.

    Raises:
        NotARunError: ``run_dir`` holds no readable manifest, or contains a symbolic link to a folder.
        ProgramMissingError: there are captures, and mptrace is missing.
        ScenarioMissingError: a scenario with ok cells is not registered, or its scores cannot be used.
        MetricConflictError: two scenarios define metrics of the same name differently.
        BudgetError: a limit of a budget cannot be converted to its metric's unit.
        InputError: two distributions register a scenario or a figure with the same name.
    """
    report_progress: Listener = progress or (lambda _: None)
    check_folders(run_dir)
    run = read_run(run_dir)
    _conclude(_analysis(run, report_progress, mptrace), report_progress)


def analyze_cell(run: Run, cell: Cell, *, mptrace: Path | None = None) -> CellResult:
    """Make the tables and scores of one cell, as `analyze` does for every cell, and return the result.

    If the scenario's scores cannot be used, the result has no scores. `analyze_rest` then raises for the whole run.

    Raises:
        ProgramMissingError: as `analyze`.
    """
    problems = tuple(make_tables([cell], mptrace, same_clock=run.manifest.same_clock))
    if not cell.ok or cell.spec is None:
        return CellResult(cell.id, problems)
    try:
        plugins = plugins_of(replace(run, cells=(cell,)))
    except (ScenarioMissingError, MetricConflictError):
        return CellResult(cell.id, problems)
    return CellResult(cell.id, problems, score_cell(cell, plugins[cell.spec.scenario]))


def analyze_rest(run: Run, results: Sequence[CellResult]) -> tuple[AnalysisProblem, ...]:
    """Make statistics, figures and report of a run after `analyze_cell` of each cell; return the report's problems.

    Args:
        run: the run; its cells' folders hold the tables and scores, and its report is replaced.
        results: the result of `analyze_cell` for each cell, in the order of ``run.cells``.

    Raises:
        ScenarioMissingError, MetricConflictError, BudgetError, InputError: as `analyze`.
    """
    problems = [problem for result in results for problem in result.problems]
    scores = [result.scores for result in results if result.scores is not None]
    analysis = _summarised(run, plugins_of(run), problems, scores)
    return _conclude(analysis, lambda _: None)


def _conclude(analysis: Analysis, report_progress: Listener) -> tuple[AnalysisProblem, ...]:
    """Draw the figures, write the report, and return the problems that it lists."""
    drawings: list[Drawing] = []
    problems: list[AnalysisProblem] = []
    for drawing in draw_all(analysis):
        if isinstance(drawing, AnalysisProblem):
            problems.append(drawing)
        else:
            drawings.append(drawing)
            report_progress(Progress("figures", len(drawings), len(drawings)))
    analysis = replace(analysis, problems=(*analysis.problems, *problems))
    write_report(analysis, drawings)
    report_progress(Progress("report", 1, 1))
    return analysis.problems


def summary(run_dir: Path) -> list[SummaryRow]:
    """Return the rows of the table that the command line prints, from ``report/summary.json``; headline metrics first.

    Raises:
        NotARunError: ``run_dir`` holds no readable manifest.
        NotAnalysedError: there is no report yet.
        TablesError: ``report/summary.json`` is damaged.
    """
    run = read_run(run_dir)
    return summary_rows(read_summary(run.directory))


def score_run(run: Run) -> list[CellScores]:
    """Make the tables of a run's cells and the scores of its ok cells, and return the scores; make no report.

    Raises:
        As `analyze`.
    """
    make_tables(run.cells, same_clock=run.manifest.same_clock)
    plugins = plugins_of(run)
    return [score_cell(cell, plugins[cell.spec.scenario]) for cell in run.cells if cell.ok and cell.spec is not None]


def statistics_of(run_dir: Path) -> Analysis:
    """Return the statistics of a run, from which the figures of its report are drawn; make no report.

    Raises:
        As `analyze`.
    """
    check_folders(run_dir)
    return _analysis(read_run(run_dir), lambda _: None, None)


def _analysis(run: Run, report_progress: Listener, mptrace: Path | None) -> Analysis:
    decoded: list[str] = []

    def cell_decoded(cell: object) -> None:
        decoded.append(str(cell))
        report_progress(Progress("tables", len(decoded), len(run.cells)))

    problems = make_tables(run.cells, mptrace, same_clock=run.manifest.same_clock, done=cell_decoded)
    plugins = plugins_of(run)
    scores: list[CellScores] = []
    for cell in run.cells:
        if cell.ok and cell.spec is not None:
            scores.append(score_cell(cell, plugins[cell.spec.scenario]))
            report_progress(Progress("scores", len(scores), run.counts["ok"]))
    analysis = _summarised(run, plugins, problems, scores)
    report_progress(Progress("statistics", 1, 1))
    return analysis


def _summarised(
    run: Run, plugins: Mapping[str, ScoringPlugin], problems: Sequence[AnalysisProblem], scores: Sequence[CellScores]
) -> Analysis:
    """Return the run with the statistics of ``scores``.

    Its problems are ``problems`` (of the tables), followed by those of the scores.
    """
    metrics: dict[str, Sequence[Metric]] = {label: plugin.metrics for label, plugin in plugins.items()}
    unscored = [scored.problem for scored in scores if scored.problem is not None]
    groups = tuple(summarise(run, metrics, scores))
    return Analysis(run, groups, tuple(interface_shares(run)), (*problems, *unscored))


def plugins_of(run: Run) -> dict[str, ScoringPlugin]:
    """Return label → scoring plug-in for scenarios with ok cells, after a check for conflicting metrics.

    Raises:
        ScenarioMissingError: a scenario is not registered, or its scores cannot be used.
        MetricConflictError: two scenarios define metrics of the same name differently.
    """
    names = {scenario.label: scenario.name for scenario in run.manifest.experiment.scenarios}
    labels = dict.fromkeys(cell.spec.scenario for cell in run.cells if cell.ok and cell.spec is not None)
    plugins = {label: scoring_of(names.get(label, label)) for label in labels}
    by_name = {plugin.name: plugin for plugin in plugins.values()}
    register(by_name[name] for name in sorted(by_name))
    return plugins
