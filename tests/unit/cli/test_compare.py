"""``mplab compare``, ``mplab trend`` and budgets on the command line."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner, Result

import mplab.run as mplab_run
from mplab.analysis.files import parse_json
from mplab.analysis.pipeline import analyze
from mplab.analysis.results import reported
from mplab.base.errors import GateError, InputError, MplabError, NoBaselineError
from mplab.cli.main import app
from mplab.cli.verbs.results.compare import change_lines
from mplab.format.events import read_events
from mplab.format.runevents import RunEvent, RunPlanned
from mplab.lab.catalog import catalog
from mplab.run.comparing import compare as compare_runs
from mplab.run.hostside.concluding import summary_of
from mplab.run.hostside.junit import junit_xml
from mplab.userfiles.experiments.resolve import load_experiment
from tests.unit.analysis.synthetic import Synthetic, toy_scenario

NIGHTS = 5
BUDGETS: list[dict[str, Any]] = [
    {"metric": "time", "transport": "mptcp", "at_most": {"value": 1000, "unit": "ms"}},
    {"metric": "time", "transport": "sptcp-lte", "no_worse_than_percent": 20.0},
]


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs; in the last one Multipath TCP is slower."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch, toy_scenario(tmp_path_factory.mktemp("toy")):
        patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
        for day in range(1, NIGHTS + 1):
            slower = {"mptcp": 1.4} if day == NIGHTS else {}
            builder = Synthetic(folder, day=day, slower=slower, labels=["1 MB"], repetitions=5, budgets=BUDGETS)
            analyze(builder.build())
    return folder


def test_runs_are_compared_from_python(runs: Path) -> None:
    *earlier, last = sorted(path for path in runs.iterdir() if path.is_dir())
    comparison = mplab_run.compare(last, runs=runs)
    assert [run.directory for run in comparison.runs.baseline] == earlier
    assert {check.state for check in comparison.failed} == {"failed"}
    with pytest.raises(GateError, match=f"{len(comparison.failed)} of {len(comparison.checks)} checks failed"):
        comparison.check()
    good = mplab_run.compare(earlier[1], [earlier[0]])
    assert good.failed == ()
    good.check()
    with pytest.raises(InputError, match="compared with itself"):
        mplab_run.compare(last, [earlier[0], last])
    with pytest.raises(NoBaselineError, match=NoBaselineError.PHRASE):
        mplab_run.compare(str(earlier[0]), runs=runs)


@pytest.mark.long
def test_a_run_of_chosen_cells_is_compared_only_by_name(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    chosen, newest = sorted(path for path in folder.iterdir() if path.is_dir())[-2:]
    before = json.loads(mplab("trend", "--runs", str(folder), "--json").stdout)["histories"]
    third = mplab("compare", "--no-gate", "--runs", str(folder), "--json", newest.name)
    assert chosen.name in json.loads(third.stdout)["baseline"]
    for run in (chosen, newest):
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["plan"]["chosen"] = True
        (run / "manifest.json").write_text(json.dumps(manifest))
    by_name = json.loads(mplab("compare", "--no-gate", "--runs", str(folder), "--json", newest.name).stdout)
    assert (by_name["run"], chosen.name in by_name["baseline"]) == (newest.name, False)
    by_default = json.loads(mplab("compare", "--no-gate", "--runs", str(folder), "--json").stdout)
    assert by_default["run"] == sorted(path.name for path in folder.iterdir() if path.is_dir())[-3]
    after = json.loads(mplab("trend", "--runs", str(folder), "--json").stdout)["histories"]
    points = [[len(history["points"]) for history in histories] for histories in (before, after)]
    assert set(points[0]) == {NIGHTS}
    assert set(points[1]) == {NIGHTS - 2}


@pytest.mark.parametrize("verb", [["compare", "20260904", "20260905"], ["compare"], ["trend"], ["report", "20260903"]])
def test_a_summary_is_read_once(runs: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(content: bytes) -> object:
        summary: Any = parse_json(content)
        read.append(summary["run_id"])
        return summary

    reported._parsed.cache_clear()
    monkeypatch.setattr(reported, "parse_json", counted)
    mplab(*verb, "--runs", str(runs))
    assert read
    assert len(read) == len(set(read))


def test_two_runs_are_compared(runs: Path, tmp_path: Path) -> None:
    junit = tmp_path / "compare.xml"
    result = mplab("compare", "20260904", "20260905", "--runs", str(runs), "--junit", str(junit))
    assert isinstance(result.exception, GateError)
    assert result.exception.exit_code == 4
    assert "2 of 4 checks failed" in str(result.exception)
    assert "worse" in result.stdout
    root = ET.parse(junit).getroot()  # noqa: S314 - our own file
    assert (root.get("tests"), root.get("failures")) == ("4", "2")
    suite = root[0]
    assert (suite.get("timestamp"), float(suite.get("time", "0")) > 0) == ("2026-09-05T10:15:00", True)
    facts = [(item.get("name"), item.get("value")) for item in suite.iter("property")]
    assert facts[:3] == [
        ("run", "20260905T101500Z-demo-abc123"), ("baseline", "20260904T101500Z-demo-abc123"), ("experiment", "demo"),
    ]  # fmt: skip
    assert ("version.mplab", "0.1.0") in facts
    assert {case.get("time") for case in suite.iter("testcase")} == {"0.000"}
    assert {case.get("classname") for case in root.iter("testcase")} == {
        "compare.limit",
        "compare.no-worse-than",
        "compare.change",
    }


def test_runs_without_a_common_series_end_with_the_gates_exit_code(runs: Path, tmp_path: Path) -> None:
    other = Synthetic(tmp_path, name="other", links=["renamed"], repetitions=2)
    with pytest.MonkeyPatch.context() as patch, toy_scenario(tmp_path / "toy"):
        patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
        analyze(other_run := other.build())
    baseline = next(runs.glob("20260904*"))
    junit = tmp_path / "compare.xml"
    shown = mplab("compare", str(baseline), str(other_run), "--junit", str(junit))
    assert isinstance(shown.exception, GateError)
    assert "no common series" in str(shown.exception)
    assert shown.stdout.startswith("failed: the run and the baseline have no common series")
    assert "nothing was compared" in (tmp_path / f"compare-{other_run.name}.html").read_text().lower()
    content = json.loads(mplab("compare", str(baseline), str(other_run), "--json", "--no-gate").stdout)
    assert not content["passed"]
    assert content["warnings"][0] == "different experiments: the run is of other, the baseline of demo"
    assert content["checks"][0]["state"] == "failed"
    case = next(ET.parse(junit).getroot().iter("testcase"))  # noqa: S314 - our own file
    assert case.get("classname") == "compare.series"
    assert case.find("failure") is not None


def test_a_metric_that_is_gone_is_said_first_and_fails(runs: Path, tmp_path: Path) -> None:
    baseline, run = (tmp_path / name for name in ("a", "b"))
    for copy, original in zip((baseline, run), sorted(runs.glob("2*-demo-*"))[:2], strict=True):
        shutil.copytree(original, copy)
    for scores in run.glob("cells/*-mptcp-*/scores.json"):
        scores.unlink()
    junit, page = tmp_path / "gone.xml", tmp_path / "pages"
    page.mkdir()
    result = mplab("compare", str(baseline), str(run), "--junit", str(junit), "-o", str(page))
    assert isinstance(result.exception, GateError)
    first, second, *_ = result.stdout.splitlines()
    assert first == "failed: files · mptcp · baseline: measured in the baseline; this run has no value"
    assert second.startswith("failed: files · mptcp · baseline · time · 1 MB: ")
    case, *_ = ET.parse(junit).getroot().iter("testcase")  # noqa: S314 - our own file
    assert (case.get("classname"), case.get("name")) == ("compare.series", "files · mptcp · baseline")
    (written,) = page.iterdir()
    text = written.read_text()
    assert text.index("Missing in this run") < text.index("<h2>Changes")


def test_lines_of_a_comparison_fit_the_terminal(runs: Path) -> None:
    shown = mplab("compare", "20260904", "20260905", "--runs", str(runs), "--all-metrics").stdout
    lines = [line for line in shown.splitlines() if line.startswith("  ")]
    assert len(lines) >= 9
    assert max(map(len, lines)) <= 110
    result = compare_runs(next(runs.glob("20260905*")), [next(runs.glob("20260904*"))])
    long = [replace(c, key=c.key._replace(labels="wikipedia.example · " * 9)) for c in result.runs.changes]
    cut = [line for line, _ in change_lines(long) if line.startswith("  ")]
    assert max(map(len, cut)) <= 110
    assert all("…" in line for line in cut)


def test_a_page_that_cannot_be_written_ends_the_comparison_only_if_it_was_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, content: bytes) -> None:
        raise MplabError(f"{path}: cannot be written: full")

    monkeypatch.setattr("mplab.cli.verbs.results.compare.replace", refuse)
    names = ("compare", "20260903", "20260904", "--runs", str(runs))
    silent = mplab(*names, "--json")
    assert silent.exit_code == 0
    assert json.loads(silent.stdout)["page"] is None
    assert "no page" in silent.stderr
    assert isinstance(mplab(*names, "-o", str(runs / "x.html")).exception, MplabError)


def test_equal_nights_pass(runs: Path) -> None:
    result = mplab("compare", "20260903", "20260904", "--runs", str(runs), "--json")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert content["passed"]
    assert {change["verdict"] for change in content["changes"]} == {"no difference seen"}


@pytest.mark.long
def test_the_newest_run_is_compared_with_those_before_it(runs: Path) -> None:
    result = mplab("compare", "--runs", str(runs), "--window", "3", "--json", "--no-gate")
    assert result.exit_code == 0
    content = json.loads(result.stdout)
    assert [name[:8] for name in content["baseline"]] == ["20260902", "20260903", "20260904"]
    assert content["run"].startswith("20260905")
    assert not content["passed"]
    slower = next(c for c in content["changes"] if (c["transport"], c["metric"]) == ("mptcp", "time"))
    assert slower["verdict"] == "worse"
    assert (slower["before"]["n"], slower["before"]["runs"], slower["after"]["n"]) == (15, 3, 5)
    assert slower["usual"][1] < slower["after"]["median"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["20260901"], "no analysed run of demo before"),
        (["20260901", "20260901"], "a run cannot be compared with itself"),
        (["nosuch", "20260901"], "no run is called 'nosuch'"),
    ],
)
def test_what_cannot_be_compared_is_said(runs: Path, arguments: Sequence[str], words: str) -> None:
    result = mplab("compare", *arguments, "--runs", str(runs))
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


def test_the_trend_has_a_page(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "trend.html"
    content = json.loads(mplab("trend", "--runs", str(runs), "-o", str(page), "--json").stdout)
    assert content["experiment"] == "demo"
    assert [len(history["points"]) for history in content["histories"]] == [NIGHTS] * 3
    assert content["level_changes"] == [], "one night is no level"
    assert {history["verdict"] for history in content["histories"]} == {"too few runs (5; at least 10)"}
    assert page.read_text().count('<g class="dot">') == 3 * NIGHTS
    shown = mplab("trend", "demo", "--runs", str(runs), "-o", str(tmp_path)).stdout
    assert "3 of 3 series: too few runs (5; at least 10)" in shown
    assert (tmp_path / "trend-demo.html").is_file()


def test_the_trend_of_an_unknown_experiment_is_refused(runs: Path) -> None:
    result = mplab("trend", "dmo", "--runs", str(runs))
    assert isinstance(result.exception, InputError)
    assert "Did you mean 'demo'?" in str(result.exception)


def test_broken_budgets_of_a_run_are_told(runs: Path) -> None:
    good, bad = sorted(runs.glob("2*-demo-*"))[-2:]
    assert summary_of(good).broken_budgets == ()
    summary = summary_of(bad)
    (text,) = summary.broken_budgets
    assert text.startswith("files · mptcp · baseline · time · 1 MB: median 1.")
    events = [event for event in read_events(bad / "events.jsonl", RunEvent) if not isinstance(event, RunPlanned)]
    root = ET.fromstring(junit_xml(bad.name, events, summary.limits))  # noqa: S314 - our own
    (case,) = root.iter("testcase")
    assert (case.get("classname"), root.get("failures")) == ("budget", "1")


HEAD = """mplab: 1
name: b
transports: [sptcp-wifi]
links: [baseline]
scenarios: [download]
budgets:
"""


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        (
            "  download_time:\n    - {at_most: 3 s}\n    - {at_most: 2 kB}\n",
            "x.yaml:9: budgets.download_time[1]: budget of download_time: found '2 kB', allowed: ms, s, min, h",
        ),
        (
            "  download_time: {at_most: 2000 ms, labels: {sise: 1 MB}}\n",
            "x.yaml:7: budgets.download_time: labels: download_time has no label 'sise'. Allowed: size",
        ),
        (
            "  goodpt: {at_least: 2 Mbit/s}\n",
            "x.yaml:7: budgets.goodpt: unknown metric 'goodpt'. Allowed: again_within, ",
        ),
        (
            "  wifi_bytes: {no_worse_than: 10 %}\n",
            "'no_worse_than' needs a metric with a better side; wifi_bytes has none",
        ),
    ],
)
def test_budgets_that_no_run_can_keep_are_refused_before(
    budgets: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(HEAD + budgets)
    for verb in ("plan", "run"):
        result = mplab(verb, "x.yaml")
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
    assert not (tmp_path / "runs").exists()


def test_budgets_are_in_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        HEAD + "  download_time: {transport: sptcp-wifi, at_most: 2 s, no_worse_than: 10 %, labels: {size: 1 MB}}\n"
    )
    (budget,) = json.loads(mplab("plan", str(file), "--json").stdout)["experiment"]["budgets"]
    assert budget == {
        "metric": "download_time",
        "transport": "sptcp-wifi",
        "scenarios": [],
        "links": [],
        "labels": {"size": "1 MB"},
        "statistic": "median",
        "at_most": {"value": 2.0, "unit": "s"},
        "at_least": None,
        "no_worse_than_percent": 10.0,
    }
    assert load_experiment(file, catalog=catalog()).budgets[0].place.endswith("x.yaml:7: budgets.download_time")


def test_a_page_goes_to_a_file_or_a_folder(runs: Path, tmp_path: Path) -> None:
    names = ("trend", "--runs", str(runs))
    for output, page in (("x.html", "x.html"), ("new", "new/trend-demo.html")):
        assert mplab(*names, "-o", str(tmp_path / output)).exit_code == 0
        assert (tmp_path / page).is_file()
    (tmp_path / "data.csv").touch()
    for wrong, words in (("no/x.html", "no does not exist"), ("data.csv", "is a file, and a folder is needed")):
        for verb in (names, ("compare", "20260903", "20260904", "--runs", str(runs))):
            result = mplab(*verb, "-o", str(tmp_path / wrong))
            assert isinstance(result.exception, InputError)
            assert words in str(result.exception)
