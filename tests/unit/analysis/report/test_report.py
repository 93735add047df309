"""The report's page and its files: complete, self-contained, the same each time."""

import csv
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mplab.analysis.errors import NotAnalysedError
from mplab.analysis.metric import Metric
from mplab.analysis.pipeline import STEPS, Progress, analyze, summary
from mplab.analysis.report import summary as report_summary
from mplab.analysis.report.sources import PAPERS, SOURCES, Citations, markdown
from mplab.base.places import ROOT
from tests.unit.analysis.synthetic import LTE, MPTCP, WIFI, Synthetic, summary_json

VOID = {"meta", "br", "link", "img", "input", "hr"}
ONE_SIZE = ["1 MB"]
Analyzed = Callable[..., Path]


class Page(HTMLParser):
    """Checks that elements nest; collects the URLs that a browser would load, and the targets of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.identifiers: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert tag not in {"iframe", "object", "embed"}
        if tag not in VOID:
            self.open.append(tag)
        self.loaded += [v for k, v in attrs if k in {"src", "srcset", "data"} and v]
        target = values.get("href") or values.get("xlink:href")
        if target:
            (self.links if tag == "a" else self.loaded).append(target)
        if values.get("id"):
            self.identifiers.append(str(values["id"]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def told() -> list[Progress]:
    """Progress reports of the analysis of `three`."""
    return []


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory, told: list[Progress]) -> Path:
    """A complete run of three repetitions, analysed once, for tests that only read it."""
    builder = Synthetic(tmp_path_factory.mktemp("three"), repetitions=3)
    run = builder.build()
    analyze(run, progress=told.append)
    return run


def page_of(run: Path) -> Page:
    return Page((run / "report" / "index.html").read_text())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_page_is_whole_and_loads_nothing(three: Path) -> None:
    page = page_of(three)
    assert page.open == []
    assert all(target.startswith("#") for target in page.loaded)
    assert len(page.identifiers) == len(set(page.identifiers))
    outside = {link for link in page.links if re.match(r"[a-z]+:|//", link)}
    assert outside <= {source.link for source in SOURCES.values()}
    for link in set(page.links) - outside:
        if link.startswith("#"):
            assert link[1:] in page.identifiers
        else:
            assert (three / "report" / link.partition("#")[0]).is_file()
    css = (three / "report" / "index.html").read_text()
    assert "@import" not in css
    assert not re.search(r"url\(\s*['\"]?(?!#)", css)


def test_the_page_has_the_full_reference_of_each_source(three: Path) -> None:
    page = page_of(three)
    cited = {link.removeprefix("#source-") for link in page.links if link.startswith("#source-")}
    assert {"han2015", "westfall-young-1993", "wilcoxon-1945"} <= cited
    assert cited == {name.removeprefix("source-") for name in page.identifiers if name.startswith("source-")}
    assert "https://doi.org/10.1145/2716281.2836090" in page.links
    assert "Report of run 20260922T101500Z-demo-abc123: WiFi, LTE or both. Seed 1." in page.text


def test_sources_are_found_in_texts() -> None:
    citations = Citations()
    parts = list(citations.cite("Hodges & Lehmann 1963; han2015 §4, ours"))
    assert parts == [
        ("Hodges & Lehmann 1963", "hodges-lehmann-1963"),
        ("; ", ""),
        ("han2015", "han2015"),
        (" §4, ours", ""),
    ]
    assert [source.key for source in citations.sources()] == ["han2015", "Hodges & Lehmann 1963"]


def test_the_manual_lists_the_same_papers() -> None:
    assert markdown(PAPERS) in (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")


def test_the_page_says_what_was_run(three: Path) -> None:
    text = page_of(three).text
    for words in (
        "WiFi, LTE or both",
        "20260922T101500Z-demo-abc123",
        "seed 1",
        "Linux 6.8.0",
        "cubic (agent, proxy and origin)",
        "0123456789ab",
        "TCP over WiFi",
        "TCP over LTE",
        "Multipath TCP",
        "RTT ±10 %",
        "Every planned cell is ok.",
        "n = 3",
    ):
        assert words in text.replace("\xa0", " "), words


def test_a_metric_is_shown_with_unit_direction_limits_and_source(three: Path) -> None:
    text = page_of(three).text
    assert "Download time s · lower is better · 0 … 900 · RFC 0 §1" in text
    assert "Subflows" in text
    time = next(group for group in summary_json(three)["metrics"] if group["metric"] == "time")
    assert (time["limits"], time["source"]) == ([0, 900], "RFC 0 §1")


def test_the_traces_have_a_section_of_their_own(three: Path) -> None:
    page = (three / "report" / "index.html").read_text()
    assert '<a href="#traces">Traces</a>' in page
    for name in ("bytes-over-time", "rtt-samples", "join-delay", "time-sequence", "waterfall"):
        assert (three / "report" / "data" / f"trace-{name}.csv").stat().st_size > 100
        assert f'href="figures/trace-{name}.svg"' in page


def test_without_tables_there_is_no_section_of_traces(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1, labels=ONE_SIZE)
    run = builder.build()
    for table in run.glob("cells/*/tables/*.parquet"):
        table.unlink()
    analyze(run)
    assert "#traces" not in (run / "report" / "index.html").read_text()


def test_cells_on_an_overloaded_host_are_flagged(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1)
    run = builder.build()
    file = sorted(run.glob("cells/*/cell.json"))[0]
    record = json.loads(file.read_text())
    remark = "the host was overloaded: other programs left 0.7 processors, the scenario needs 1"
    file.write_text(json.dumps({**record, "warnings": [remark], "host": {"overloaded": True, "free_cpus": 0.7}}))
    analyze(run)
    text = page_of(run).text
    assert "1 of 3 ok cells measured on an overloaded host, and are counted" in text
    assert remark in text


def test_what_was_not_controlled_without_root_is_said_once(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1)
    run = builder.build()
    for file in run.glob("cells/*/cell.json"):
        phone = {"name": "pixel", "root": "none", "uncontrolled": ["default route", "QUIC"]}
        file.write_text(json.dumps({**json.loads(file.read_text()), "phone": phone}))
    analyze(run)
    assert page_of(run).text.count("pixel was used without root. Not controlled: default route; QUIC.") == 1


def test_every_cell_that_does_not_count_is_explained(analyzed: Analyzed) -> None:
    states = {1: "invalid", 2: "failed", 8: "partial", 9: "missing"}
    run = analyzed(
        repetitions=3,
        labels=ONE_SIZE,
        outcome=lambda c: states.get(c["index"], "ok"),
        skipped=[{"transport": "mpflex", "reason": "it is <not> built"}],
        retried=(4,),
    )
    text = page_of(run).text
    assert "<invalid> because of cell 1" in text
    assert "<failed> because of cell 2" in text
    assert "the cell was not finished" in text
    assert "the cell has not been run" in text
    assert "This run has not finished: 1 missing cell and 1 partial cell of 9 planned." in text
    assert "1 invalid and 1 failed of 9 cells" in text
    assert "mpflex was skipped: it is <not> built" in text
    assert "curl: connection reset" in text
    assert "mplab resume" in text
    content = summary_json(run)
    assert content["cells"] == {"ok": 5, "invalid": 1, "failed": 1, "partial": 1, "missing": 1}
    assert {cell["outcome"] for cell in content["not_ok"]} == set(states.values())
    assert not content["complete"]


@pytest.mark.parametrize("outcome", ["invalid", "missing", "partial"])
def test_a_run_without_ok_cells_has_a_report(analyzed: Analyzed, outcome: str) -> None:
    run = analyzed(repetitions=1, outcome=lambda _: outcome)
    page = page_of(run)
    assert "No cell is ok: there is nothing to average." in page.text
    assert "No headline metric has values of two transports to compare." in page.text
    assert summary(run) == []


@pytest.mark.long
def test_again_gives_the_same_bytes(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=3, labels=ONE_SIZE, outcome=lambda c: "failed" if c["index"] == 3 else "ok")
    run = builder.build()
    analyze(run)
    first = tree(run)
    for path in run.rglob("scores.json"):
        path.unlink()
    (run / "report" / "figures" / "of-another-time.svg").write_text("<svg/>")
    analyze(run)
    assert tree(run) == first
    assert not [name for name in first if "/." in name]


def test_the_directory_may_be_moved(synthetic: Callable[..., Synthetic], tmp_path: Path) -> None:
    builder = synthetic(repetitions=1, labels=ONE_SIZE)
    run = builder.build()
    analyze(run)
    first = tree(run)
    assert str(tmp_path).encode() not in b"".join(first.values())
    moved = run.rename(tmp_path / "moved")
    analyze(moved)
    assert tree(moved) == first


@pytest.mark.usefixtures("three")
def test_progress_goes_through_the_steps(told: list[Progress]) -> None:
    assert list(dict.fromkeys(p.step for p in told)) == list(STEPS[1:])
    assert Progress("scores", 9, 9) in told


def test_the_answer_is_one_plain_sentence(answered: Analyzed) -> None:
    answers = summary_json(answered(repetitions=8, labels=ONE_SIZE))["answers"]
    assert len(answers) == 1
    assert answers[0]["winner"] == "mptcp"
    assert re.fullmatch(
        r"Downloading 1 MB over WiFi 7\.0 Mbit/s 50 ms \+ LTE 9\.2 Mbit/s 70 ms: Multipath TCP takes 0\.\d+ s, "
        r"\d+\.\d % less than the best single path \(TCP over LTE 1\.\d+ s\); "
        r"95 % interval \d+\.\d to \d+\.\d %, n = 8\.",
        answers[0]["sentence"].replace("\xa0", " "),
    )


def test_with_too_few_repetitions_nobody_wins(answered: Analyzed) -> None:
    run = answered(repetitions=2, labels=ONE_SIZE)
    assert summary_json(run)["answers"][0]["winner"] is None
    text = page_of(run).text
    assert "too few repetitions" in text
    assert "no interval" in text


def test_equal_transports_have_no_clear_winner(answered: Analyzed) -> None:
    same = {**LTE, "label": "sptcp-b", "name": "sptcp-b"}
    run = answered(repetitions=6, transports=(same, {**MPTCP, "label": "other", "name": "other"}))
    answers = summary_json(run)["answers"]
    assert {answer["winner"] for answer in answers} == {None}
    assert {answer["verdict"] for answer in answers} == {"undecided"}
    assert "Undecided: neither a difference (p = " in answers[0]["sentence"].replace("\xa0", " ")


@pytest.mark.parametrize("relative", [20.0, 150.0])
def test_an_equivalence_has_one_unit(synthetic: Callable[..., Synthetic], no_figures: None, relative: float) -> None:
    same = {**LTE, "label": "sptcp-b", "name": "sptcp-b"}
    run = synthetic(repetitions=12, labels=ONE_SIZE, transports=(same, MPTCP), slower={"mptcp": 0.7 / 0.62}).build()
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["experiment"]["smallest_effect"] = {"relative_percent": relative, "time_s": 0.0}
    (run / "manifest.json").write_text(json.dumps(manifest))
    analyze(run)
    (answer,) = summary_json(run)["answers"]
    assert answer["verdict"] == "equivalent"
    said = answer["sentence"].replace("\xa0", " ").partition("Equivalent: ")[2]
    assert len(set(re.findall(r"\d (ms|s)\b", said))) == 1, said
    assert len(re.findall(r"\d (ms|s)\b", said)) == 2, said


def test_one_of_a_noun_is_singular() -> None:
    silences = Metric("silences", "Silences", "", "lower", outcome="has {value} silences")
    assert [silences.outcome_of(value) for value in ("1", "2", "1.50")] == [
        "has 1 silence", "has 2 silences", "has 1.50 silences",
    ]  # fmt: skip


def test_transports_are_told_with_their_options(answered: Analyzed) -> None:
    options: dict[str, object] = {"scheduler": "minrtt", "primary": None, "plain": True, "reinjection": []}
    flex = {**MPTCP, "label": "mpflex-minrtt", "name": "mpflex", "options": options}
    text = page_of(answered(repetitions=1, transports=(WIFI, flex))).text
    assert "scheduler minrtt; plain yes; reinjection none" in text


@pytest.mark.parametrize(
    ("transports", "words"),
    [
        ((WIFI, LTE), "No multipath transport was measured."),
        ((MPTCP, {**MPTCP, "label": "backup", "title": "Backup"}), "No single path was measured."),
    ],
)
def test_what_cannot_be_compared_is_said(
    answered: Analyzed, transports: tuple[dict[str, str], ...], words: str
) -> None:
    assert words in summary_json(answered(repetitions=3, transports=transports))["answers"][0]["sentence"]


def test_a_transport_alone_is_no_answer(answered: Analyzed) -> None:
    assert summary_json(answered(repetitions=3, transports=(MPTCP,)))["answers"] == []


@pytest.mark.long
def test_many_labels_are_answered_together(analyzed: Analyzed) -> None:
    run = analyzed(repetitions=10, labels=[f"site-{i}" for i in range(10)])
    (answer,) = summary_json(run)["answers"]
    assert answer["winner"] == "mptcp"
    assert "of 10 values of size, Multipath TCP is better for 10. Advantage: median" in answer["sentence"]


def test_the_csv_files_hold_the_numbers(three: Path) -> None:
    with (three / "report" / "data" / "statistics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    groups = summary_json(three)["metrics"]
    assert len(rows) == sum(series["n"] > 0 for group in groups for series in group["transports"])
    first = groups[0]["transports"][0]
    assert float(rows[0]["median"]) == first["median"]
    assert rows[0]["n"] == "3"
    with (three / "report" / "data" / "values.csv").open(newline="") as file:
        own = [row for row in csv.DictReader(file) if row["metric"] in {"time", "goodput", "flows"}]
    assert len(own) == 9 * 7


def test_each_contrast_has_a_row_of_its_own(three: Path) -> None:
    groups = summary_json(three)["metrics"]
    contrasts = [contrast for group in groups for contrast in group["contrasts"]]
    assert len(contrasts) == 6 * 2, "flows have no better side"
    with (three / "report" / "data" / "contrasts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["shift"]) for row in rows] == [contrast["shift"] for contrast in contrasts]
    for contrast in contrasts:
        assert contrast["interval"][0] <= contrast["shift"] <= contrast["interval"][1]
        assert contrast["interval_method"] == "BCa bootstrap"
        assert contrast["p"] <= min(contrast["p_bh"], contrast["p_family"]) <= 1
        assert contrast["least_p"] == 0.25
    with (three / "report" / "data" / "quantiles.csv").open(newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == 5 * len(contrasts)
    text = page_of(three).text
    assert "Each contrast tests, distributions, repetitions needed" in text
    assert "signed rank, exact" in text


def test_rows_for_a_terminal(three: Path) -> None:
    rows = summary(three)
    assert rows[0].headline
    assert (rows[0].metric, rows[0].labels, rows[0].unit, rows[0].n) == ("Download time", "10 kB", "s", 3)
    assert not [row for row in rows if row.best], "three repetitions show no winner"
    assert [row.gain[0] for row in rows if row.headline and row.transport == "mptcp"] == ["+"] * 3


def test_the_winners_row_is_marked_on_page_and_terminal(answered: Analyzed) -> None:
    run = answered(repetitions=8, labels=ONE_SIZE)
    best = [row for row in summary(run) if row.best]
    assert {row.transport for row in best} == {"mptcp"}
    page = (run / "report" / "index.html").read_text()
    marked = re.findall(r'</i>([^<]*)</span> <span class="best">better</span>', page)
    assert set(marked) == {"Multipath TCP"}


def test_all_headline_metrics_are_in_one_table_before_the_scenarios(three: Path) -> None:
    page = (three / "report" / "index.html").read_text()
    table = page[page.index('id="headlines"') : page.index('id="scenario-1"')]
    assert [table.count(f"Download time, {size}<") for size in ("10 kB", "1 MB", "10 MB")] == [1, 1, 1]
    assert table.count("too few repetitions") == 3


def test_scenarios_with_the_same_activity_are_named(answered: Analyzed) -> None:
    scenarios = [{"label": f"files-{k}", "name": "toy", "parameters": {}} for k in range(2)]
    answers = summary_json(answered(repetitions=1, labels=ONE_SIZE, scenarios=scenarios))["answers"]
    assert [f"Downloading 1 MB (files-{k}) over WiFi" in answers[k]["sentence"] for k in range(2)] == [True, True]


def test_an_answer_says_what_it_is_without_the_flagged_cells(synthetic: Callable[..., Synthetic]) -> None:
    run = synthetic(repetitions=8, labels=ONE_SIZE).build()
    for file in sorted(run.glob("cells/*-mptcp-*/cell.json"))[:3]:
        record = json.loads(file.read_text())
        file.write_text(json.dumps({**record, "warnings": ["wan.up: 1 of 60 packets left the link emulator late"]}))
    analyze(run)
    (answer,) = summary_json(run)["answers"]
    assert answer["without_flagged"]["cells"] == 3
    shares = [f"{100 * share:.1f}" for share in (answer["without_flagged"]["improvement"], answer["improvement"])]
    said = "Without the 3 flagged cells: {} % less instead of {} % less; ".format(*shares)
    assert f"{said}the verdict changes: too few repetitions, not Multipath TCP is better." in page_of(run).text
    assert (answer["without_flagged"]["verdict"], answer["without_flagged"]["changed"]) == ("too few repetitions", True)


def test_no_number_on_the_page_has_an_exponent(three: Path) -> None:
    text = page_of(three).text
    results = text[text.index("The answer") : text.rindex("How it was run")]
    assert "Δ by block" in results
    assert not re.search(r"\d[eE][+-]?\d\d", results)


def test_a_run_without_a_report_has_no_summary(synthetic: Callable[..., Synthetic]) -> None:
    run = synthetic(repetitions=1).build()
    with pytest.raises(NotAnalysedError, match="mplab report"):
        summary(run)


def test_the_summary_is_strict_json(answered: Analyzed) -> None:
    text = (answered(repetitions=1) / "report" / "summary.json").read_text()

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    assert json.loads(text, parse_constant=refuse)["format"] == 1


def test_another_congestion_control_than_requested_is_a_warning_and_the_page_is_made_by_analyze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
    builder = Synthetic(tmp_path, repetitions=1, origin_control="reno")
    run = builder.build()
    analyze(run)
    warning = "The origin used reno congestion control in 3 ok cells; cubic was requested."
    assert warning in summary_json(run)["warnings"]
    page = Page((run / "report" / "index.html").read_text()).text
    assert warning in page
    assert f"mplab analyze runs/{run.name}" in page
    assert "mplab report runs/" not in page


def test_page_and_summary_are_made_from_the_same_conclusions(
    synthetic: Callable[..., Synthetic], no_figures: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[str] = []

    def count(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            computed.append(name)
            return function(*arguments)

        return counted

    parts = ("warnings", "answers", "outcomes", "judge_limits")
    for name in parts:
        monkeypatch.setattr(report_summary, name, count(name, getattr(report_summary, name)))
    analyze(synthetic(repetitions=1, labels=ONE_SIZE).build())
    assert sorted(computed) == sorted(parts)
