"""Write the page of the papers from the catalogue and the compact results: Markdown, the same bytes for the same input.

The p-values are corrected over all findings of the page (`mplab.analysis.verdicts.correction`).
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from mplab.analysis.report.sources import SOURCES
from mplab.analysis.text import DASH, p_text
from mplab.analysis.verdicts.claims import Outcome, with_correction
from mplab.analysis.verdicts.correction import correct
from mplab.analysis.verdicts.judging import ALL_VERDICTS, VERDICTS
from mplab.analysis.verdicts.wording import estimate_words, interval_note, interval_words
from mplab.base.errors import InputError
from mplab.base.files import explained
from mplab.base.humanize import counted, duration
from mplab.format.claim import Claim
from mplab.format.finding import ClaimFinding
from mplab.format.paperresult import FIGURES, RESULTS, ClaimResult, FigureResult, PaperResult
from mplab.userfiles.papers.paper import Catalogue, Paper, RowFile

State = Literal["verdict", "data", "not run yet", "piece missing", "not in a lab"]
STATES: tuple[State, ...] = ("verdict", "data", "not run yet", "piece missing", "not in a lab")
MOST_FINDINGS = 12
"""Maximum number of findings of a claim that the page lists one by one."""

_COLUMNS = 120
_MADE = "<!-- Made by `mplab papers page` from experiments/papers and the results: change these, not this page. -->"
_FORM_ORDER = ("full", "file", "quick")
"""Forms of a result, the preferred one first."""
_MARKUP = re.compile(r"([\\`*_\[\]<>|#])")


def read_results(folder: Path) -> dict[str, PaperResult]:
    """Return experiment → its result, of the folder ``results`` in `folder`. The full form is preferred to the quick.

    Raises:
        InputError: a file is no result.
        MplabError: a file cannot be read.
    """
    found: dict[str, PaperResult] = {}
    for path in sorted((folder / RESULTS).glob("*.json")):
        with explained(path):
            content = path.read_bytes()
        try:
            result = PaperResult.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            problem = f"{where}: {first['msg']}" if where else first["msg"]
            raise InputError(f"{path}:1: {problem}. 'mplab papers collect' makes it again") from error
        other = found.get(result.experiment)
        if other is None or _FORM_ORDER.index(result.form) < _FORM_ORDER.index(other.form):
            found[result.experiment] = result
    return found


@dataclass(frozen=True)
class JudgedClaim:
    """A claim of a row with its findings, whose p-values are corrected over the page."""

    result: ClaimResult
    outcome: Outcome


@dataclass(frozen=True)
class JudgedRow:
    """A row of the catalogue with its state, and the results of the runs that repeat it."""

    row: RowFile
    state: State
    results: tuple[PaperResult, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()

    @property
    def not_run(self) -> list[str]:
        """Return the experiments of this row that have no result."""
        run = {result.experiment for result in self.results}
        return [name for name in self.row.experiments if name not in run]

    @property
    def figures(self) -> list[tuple[PaperResult, FigureResult]]:
        """Return the drawings for this row, each with the result of its run."""
        patterns = self.row.figures
        return [
            (result, figure)
            for result in self.results
            for figure in result.figures
            if figure.name in patterns and fnmatchcase(figure.drawing, patterns[figure.name])
        ]


def judge(catalogue: Catalogue, results: Mapping[str, PaperResult]) -> list[JudgedRow]:
    """Return all rows with their states and claims, in the order of the catalogue."""
    claims = [(result.experiment, claim) for result in results.values() for claim in result.claims]
    corrections = iter(correct([finding for _, claim in claims for finding in claim.found]))
    judged: dict[tuple[str, str], list[JudgedClaim]] = {}
    for experiment, claim in claims:
        corrected = tuple(with_correction(finding, next(corrections)) for finding in claim.found)
        outcome = Outcome(Claim(text=claim.text, groups=claim.groups), corrected)
        judged.setdefault((experiment, claim.figure), []).append(JudgedClaim(claim, outcome))
    return [_judged(row, results, judged) for row in catalogue.rows]


def _judged(
    row: RowFile, results: Mapping[str, PaperResult], judged: Mapping[tuple[str, str], list[JudgedClaim]]
) -> JudgedRow:
    if row.cannot:
        return JudgedRow(row, "not in a lab")
    if row.experiment is None:
        return JudgedRow(row, "data" if row.answer else "piece missing")
    found = tuple(results[name] for name in row.experiments if name in results)
    if not found:
        return JudgedRow(row, "not run yet")
    claims = tuple(claim for experiment in row.experiments for claim in judged.get((experiment, row.id), ()))
    recorded = any(claim.outcome.verdict in VERDICTS for claim in claims)
    return JudgedRow(row, "verdict" if recorded else "data", found, claims)


def page(catalogue: Catalogue, results: Mapping[str, PaperResult], folder: str) -> str:
    """Return the page as Markdown.

    Args:
        catalogue: the catalogue.
        results: experiment → result.
        folder: folder of results and figures, relative to the page: ``papers``.
    """
    rows = judge(catalogue, results)
    return "\n".join(_page(catalogue, rows, results, folder)).rstrip("\n") + "\n"


def _page(
    catalogue: Catalogue, rows: Sequence[JudgedRow], results: Mapping[str, PaperResult], folder: str
) -> Iterator[str]:
    yield from ("# The papers, run again", "", _MADE, "")
    yield from _wrapped(
        f"The {len(rows)} figures, tables and numbers of results in five papers about multipath transport on phones, "
        "each with the result of our run. The links are emulated, the servers are ours; browsers and kernels are real. "
        "[The papers again](papers-again.md) explains how the page is made, and how to repeat it."
    )
    yield ""
    yield from _state_table(catalogue, rows)
    yield from _verdict_table(rows)
    for paper in catalogue.papers:
        yield from (f"## {paper.name}", "")
        source = SOURCES.get(paper.name)
        if source is not None:
            link = f" [{source.link_text}]({source.link})" if source.link else ""
            yield from _wrapped(f"{source.authors}. *{source.title}.* {source.place}.{link}")
            yield ""
        ids = {row.id for row in paper.rows}
        for judged in rows:
            if judged.row.id in ids:
                yield from _row(judged, folder)
    if results:
        yield from _runs(results, folder)


def _state_table(catalogue: Catalogue, rows: Sequence[JudgedRow]) -> Iterator[str]:
    by_id = {judged.row.id: judged.state for judged in rows}
    yield from ("## Count", "")
    yield from _wrapped(
        "*Verdict*: a claim is judged. *Data*: the data or the figure is there, but no claim is judged. *Piece "
        "missing*: mplab cannot repeat it yet. *Not in a lab*: it describes people or the Internet of its time."
    )
    yield ""
    yield f"| paper | rows | {' | '.join(STATES)} |"
    yield f"| --- | {' | '.join('---:' for _ in ('rows', *STATES))} |"
    for paper in (*catalogue.papers, Paper("all", catalogue.rows)):
        counts = Counter(by_id[row.id] for row in paper.rows)
        yield f"| {paper.name} | {len(paper.rows)} | {' | '.join(str(counts[state]) for state in STATES)} |"
    yield ""


def _verdict_table(rows: Sequence[JudgedRow]) -> Iterator[str]:
    outcomes = [claim.outcome for judged in rows for claim in judged.claims]
    yield from ("## Verdicts", "")
    if not outcomes:
        yield from ("No claim is judged yet.", "")
        return
    yield from _wrapped(
        "Number of claims by verdict. *Confirmed*: the verdict is certain after the correction for all findings of "
        "this page."
    )
    yield from ("", "| verdict | claims | confirmed |", "| --- | ---: | ---: |")
    for verdict in ALL_VERDICTS:
        those = [outcome for outcome in outcomes if outcome.verdict == verdict]
        yield f"| {verdict} | {len(those)} | {sum(outcome.confirmed for outcome in those)} |"
    yield ""


def _row(judged: JudgedRow, folder: str) -> Iterator[str]:
    row = judged.row
    yield from (f"### {row.id}", "")
    yield from _wrapped(f"{_sentence(row.shows)} ({_plain(row.place)})")
    yield ""
    items = {
        "Paper": _plain(row.numbers),
        "Ours": _plain(row.answer),
        "State": _state_words(judged),
        "Differs": _plain(row.differs),
        "Missing": _plain(row.missing),
        "Not in a lab": _plain(row.cannot),
        "No claim": "" if judged.claims else _plain(row.unclaimed),
        "Why": _plain(row.why) if judged.results else "",
    }
    for title, text in items.items():
        if text:
            yield from _item(title, text)
    for result in judged.results:
        yield from _item("Run", f"{_run_words(result)}, [result]({folder}/{RESULTS}/{_result_name(result)})")
    if judged.results and judged.not_run:
        yield from _item("Not run yet", ", ".join(f"`{name}`" for name in judged.not_run))
    if row.experiment:
        form = "--full" if any(result.form == "full" for result in judged.results) else "--quick"
        yield from _item("Again", f"`mplab papers run {form} {row.id}`")
    yield ""
    for claim in judged.claims:
        yield from _claim(claim)
    left_out = [(result, figure) for result, figure in judged.figures if figure.file is None]
    for _, figure in judged.figures:
        if figure.file is not None:
            yield from (f"![{_plain(figure.title)}]({folder}/{FIGURES}/{figure.file})", "")
    if left_out:
        names = dict.fromkeys(f"`mplab figures {result.run} -f {figure.name}`" for result, figure in left_out)
        yield from _wrapped(f"{counted(len(left_out), 'more drawing')}: {', '.join(names)}")
        yield ""


def _state_words(judged: JudgedRow) -> str:
    if judged.state != "verdict":
        return judged.state
    verdicts = [claim.outcome.verdict for claim in judged.claims]
    return ", ".join(
        f"**{name}**{f' ({verdicts.count(name)})' if len(verdicts) > 1 else ''}"
        for name in ALL_VERDICTS
        if name in verdicts
    )


def _claim(claim: JudgedClaim) -> Iterator[str]:
    result, outcome = claim.result, claim.outcome
    sure = ", confirmed" if outcome.confirmed else ""
    width = f"; width: {_plain(result.width)}" if result.width and result.width != "paper" else ""
    about = f" ({_plain(result.claimed)}{width})" if result.claimed else ""
    note = interval_note(outcome.without_interval, [finding.verdict for finding in outcome.findings])
    doubt = f" ({note})" if note else ""
    yield from _wrapped(f"**{_plain(result.text)}**{about}: {outcome.verdict}{sure}{doubt}.")
    yield ""
    measured = [finding for finding in outcome.findings if finding.verdict in VERDICTS]
    shown = measured[:MOST_FINDINGS]
    if shown:
        yield "| group | ours | 95 % interval | n | p | corrected | verdict |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
        for finding in shown:
            cells = [
                _group(finding),
                estimate_words(finding),
                interval_words(finding),
                " / ".join(map(str, finding.cells)) or DASH,
                p_text(finding.p),
                p_text(finding.p_corrected),
                finding.verdict
                + (", confirmed" if finding.confirmed else " (no interval)" if finding.interval is None else ""),
            ]
            yield f"| {' | '.join(cells)} |"
        yield ""
    if hidden := len(measured) - len(shown):
        yield from _wrapped(f"{counted(hidden, 'more group')} in the result.")
        yield ""
    missing = Counter(
        f"{finding.verdict}: {finding.missing}" for finding in outcome.findings if finding.verdict not in VERDICTS
    )
    for reason, count in missing.items():
        yield from _wrapped(f"{counted(count, 'group')} with {_plain(reason)}.")
        yield ""


def _group(found: ClaimFinding) -> str:
    words = [found.scenario, found.link, *found.labels.values()]
    against = [f"against {found.against}"] if found.against else []
    return " · ".join(_plain(word) for word in (*words, *against) if word) or "all"


def _run_words(result: PaperResult) -> str:
    took = f", {duration(result.duration_s)}" if result.duration_s is not None else ""
    return (
        f"`{result.run}`, {'as in the file' if result.form == 'file' else f'{result.form} form'}, seed {result.seed}, "
        f"{counted(result.repetitions, 'repetition')}{took}{_cell_words(result)}"
    )


def _cell_words(result: PaperResult) -> str:
    """Return the numbers of cells that are not ok and of flagged ones; "" without such cells."""
    counts = {"not ok": len(result.not_ok), "flagged": len(result.flagged)}
    return "".join(f", {counted(count, 'cell')} {word}" for word, count in counts.items() if count)


def _result_name(result: PaperResult) -> str:
    return f"{result.experiment}.{result.form}.json"


def _runs(results: Mapping[str, PaperResult], folder: str) -> Iterator[str]:
    """Yield the section about the runs: their cells, and the versions."""
    yield from ("## Runs", "")
    yield from _wrapped(
        "*Flagged*: ok cells with warnings, or measured on an overloaded host; the results name them. Cells that are "
        "not ok are never averaged."
    )
    yield from ("", "| experiment | run | form | cells ok | not ok | flagged | time | mplab | kernel |")
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |"
    for name, result in sorted(results.items()):
        cells = [
            f"[{name}]({folder}/{RESULTS}/{_result_name(result)})",
            f"`{result.run}`",
            result.form,
            str(result.cells.get("ok", 0)),
            str(len(result.not_ok)),
            str(len(result.flagged)),
            duration(result.duration_s) if result.duration_s is not None else DASH,
            _plain(result.versions.get("mplab", DASH)),
            _plain(result.versions.get("kernel", DASH)),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _item(title: str, text: str) -> list[str]:
    return textwrap.wrap(
        f"- {title}: {text}",
        _COLUMNS,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _COLUMNS, break_long_words=False, break_on_hyphens=False)


def _sentence(text: str) -> str:
    plain = _plain(text)
    return f"{plain[:1].upper()}{plain[1:]}"


def _plain(text: str) -> str:
    """Return a text of a file or result as Markdown that shows it, in one line."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
