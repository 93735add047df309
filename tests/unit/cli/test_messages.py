"""Errors of a user: each gives one clear message and an exit code, never a traceback."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mplab.analysis.pipeline import analyze
from mplab.base.errors import LabNotReadyError, reported_error
from mplab.cli.main import main
from mplab.run import planning
from tests.unit.analysis.synthetic import Synthetic, toy_scenario

Failed = Callable[..., tuple[int, str]]

EXPERIMENT = "mplab: 1\nname: x\ntransports: [sptcp-wifi, mptcp]\nlinks: [baseline]\nscenarios: [download]\n"
CAMPAIGN = "mplab_campaign: 1\nname: c\nexperiments: [x.yaml]\n"
LAB = "mplab: 1\nname: bench\nphones: {one: {driver: virtual}}\n"
LINK = "title: t\nwifi: {down: 1 Mbit/s, up: 1 Mbit/s, rtt: 1 ms}\n"


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Failed:
    """Run a failing command in its own folder; return its exit code and its standard error."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("x", EXPERIMENT), ("campaign", CAMPAIGN), ("lab", LAB), ("link", LINK)):
        Path(f"{name}.yaml").write_text(text, encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["mplab", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        text = capsys.readouterr().err
        assert "Traceback" not in text
        return ended.value.code, text

    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An analysed run."""
    builder = Synthetic(tmp_path_factory.mktemp("runs"), repetitions=2)
    path = builder.build()
    with pytest.MonkeyPatch.context() as patch, toy_scenario(tmp_path_factory.mktemp("toy")):
        patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
        analyze(path)
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["campaign", "x.yaml"], "x.yaml:1: this is an experiment file, not a campaign file. Use it with 'mplab run"),
        (["plan", "campaign.yaml"], "campaign.yaml:1: this is a campaign file, not an experiment file."),
        (["plan", "lab.yaml"], "lab.yaml:1: this is a lab file, not an experiment file."),
        (["plan", "x.yaml", "--lab", "x.yaml"], "x.yaml:1: this is an experiment file, not a lab file."),
        (["links", "lint", "x.yaml"], "x.yaml:1: this is an experiment file, not a link condition."),
        (["plan", "link.yaml"], "link.yaml:1: this is a link condition, not an experiment file."),
        (["report", "x.yaml"], "x.yaml:1: this is an experiment file, not a run directory. Use it with 'mplab run"),
        (["reproduce", "lab.yaml"], "lab.yaml:1: this is a lab file, not a bundle."),
        (["links", "show", "x.yaml"], "x.yaml:1: this is an experiment file, not a link condition."),
        (["scenarios", "show", "x.yaml"], "x.yaml:1: this is an experiment file, not the name of a scenario."),
        (["lab", "device", "--model", "x.yaml"], "x.yaml:1: this is an experiment file, not a model of a phone."),
    ],
)
def test_a_file_of_another_kind_is_named_in_one_line(failed: Failed, arguments: Sequence[str], words: str) -> None:
    code, text = failed(*arguments)
    assert code == 2
    assert text.startswith(words)
    assert text.count("\n") == 1


def test_with_json_an_error_is_one_object(failed: Failed) -> None:
    Path("x.yaml").write_text(EXPERIMENT.replace("mptcp", "mptp"), encoding="utf-8")
    code, text = failed("plan", "x.yaml", "--json")
    (problem,) = json.loads(text)["error"]["problems"]
    assert (code, json.loads(text)["error"]["exit_code"]) == (2, 2)
    allowed = problem.pop("allowed")
    assert {"mptcp", "sptcp-lte"} <= set(allowed)
    assert problem.pop("text").startswith("unknown transport 'mptp'")
    assert problem == {"file": "x.yaml", "line": 3, "key": "transports[1]", "found": "mptp", "meant": "mptcp"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "nosuch.yaml", "--json"], "nosuch.yaml: no such file"),
        (["pln", "--json"], "No such command 'pln'. Did you mean 'plan'"),
        (["plan", "--json"], "Missing argument 'FILE'"),
        (["compare", "--json", "--correction", "x"], "Invalid value for '--correction': 'x' is not one of"),
    ],
)
def test_with_json_every_error_is_an_object(failed: Failed, arguments: Sequence[str], words: str) -> None:
    code, text = failed(*arguments)
    error = json.loads(text)["error"]
    assert (code, error["problems"]) == (2, [])
    assert words in error["message"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["pln"], "mplab: no such command 'pln'. Did you mean 'plan', 'plugins'? Try 'mplab --help'"),
        (["plan"], "mplab plan: missing argument 'FILE'. Try 'mplab plan --help'"),
        (["lab", "up", "--nope"], "mplab lab up: no such option: --nope"),
        (["compare", "--correction", "x"], "mplab compare: invalid value for '--correction': 'x' is not one of "),
    ],
)
def test_a_wrong_command_line_is_named_in_one_line(failed: Failed, arguments: Sequence[str], line: str) -> None:
    code, text = failed(*arguments)
    assert (code, text.count("\n")) == (2, 1)
    assert text.startswith(line)
    assert text.endswith(f"Try '{text.partition(':')[0]} --help'\n")


def test_a_group_without_a_verb_prints_only_its_help(failed: Failed) -> None:
    assert failed("lab") == (2, "")


def test_an_error_from_inside_the_lab_has_one_prefix() -> None:
    error = reported_error(3, "mplab: nginx: not found")
    assert (type(error), str(error)) == (LabNotReadyError, "nginx: not found")


def test_with_json_an_interrupt_is_an_object(failed: Failed, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(planning, "plan", interrupted)
    code, text = failed("plan", "x.yaml", "--json")
    assert (code, json.loads(text)["error"]) == (130, {"exit_code": 130, "message": "interrupted", "problems": []})


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("budgets: {download_time: {max: 2 s}}", "unknown key 'max'. Did you mean 'at_most'?"),
        ("budgets: {goodput: {min: 2 Mbit/s}}", "unknown key 'min'. Did you mean 'at_least'?"),
        ("scenarios: [{download: {sizes: [10 TB]}}]", "size '10 TB': must be at most 1 TB"),
        ("scenarios: [{download: {sizes: [1 Tb]}}]", "unknown unit 'Tb'. Did you mean 'TB'?"),
        ("lab: link.yaml", "x.yaml:6: lab: lab file 'link.yaml' cannot be used. Its problems follow\nlink.yaml:1: "),
        ("extends: nothere.yaml", "extends: 'nothere.yaml': no such file: nothere.yaml. Allowed: "),
    ],
)
def test_values_that_cannot_be(failed: Failed, keys: str, words: str) -> None:
    key = keys.partition(":")[0]
    lines = [line for line in EXPERIMENT.splitlines(keepends=True) if not line.startswith(f"{key}:")]
    Path("x.yaml").write_text(f"{''.join(lines)}{keys}\n", encoding="utf-8")
    Path("05-neg-rep.yaml").touch()
    code, text = failed("plan", "x.yaml")
    assert code == 2
    assert words in text


def test_the_first_of_several_problems_has_the_form_of_the_others(failed: Failed) -> None:
    Path("x.yaml").write_text(EXPERIMENT.replace("mptcp", "mptp").replace("[download]", "[downlod]"), encoding="utf-8")
    code, text = failed("plan", "x.yaml")
    assert code == 2
    assert [line.split(" ")[0] for line in text.splitlines()] == ["x.yaml:3:", "x.yaml:5:"]
    assert failed("plan", "nosuch.yaml")[1].startswith("mplab: nosuch.yaml: no such file")


OUTPUTS = [
    ["init", "{}/x.yaml"],
    ["bundle", "RUN", "-o", "{}/x.tar.gz"],
    ["report", "RUN", "--pdf", "{}/x.pdf"],
    ["trend", "--runs", "RUNS", "-o", "{}/x.html"],
    ["compare", "RUN", "OTHER", "--junit", "{}/x.xml"],
    ["links", "show", "baseline", "--plot", "{}/x.svg"],
    ["results", "export", "runs", "--runs", "RUNS", "-o", "{}/x.csv"],
    ["results", "index", "--runs", "RUNS", "--index", "{}/x.duckdb"],
    ["scenarios", "record", "app", "--dump", "screen.xml", "--into", "{}/app.yaml"],
]
FOLDERS = [
    ["figures", "RUN", "-o", "{}/figures"],
    ["reproduce", "BUNDLE", "--report-only", "--unpack-to", "{}/kept"],
    ["scenarios", "check", "download", "--runs", "{}/checks"],
    ["plan", "x.yaml", "--runs", "{}"],
    ["status", "--runs", "{}"],
    ["campaign", "campaign.yaml", "--campaigns", "{}"],
    ["campaign", "status", "--campaigns", "{}"],
]


LATE = {"report", "scenarios"}
"""Verbs that write only after Chromium or a user has answered; /proc looks writable until then."""
WRONG_OUTPUTS = [
    *((arguments, folder) for arguments in OUTPUTS for folder in ("nosuch", "x.yaml")),
    *((arguments, "/proc") for arguments in OUTPUTS if arguments[0] not in LATE),
    *((arguments, "x.yaml") for arguments in FOLDERS),
    (FOLDERS[0], "/proc"),
]


def other_run(run: Path) -> Path:
    """Return an analysed run next to `run`."""
    other = run.parent / "20260923T101500Z-demo-abc123"
    if not other.exists():
        builder = Synthetic(run.parent, repetitions=2, day=23)
        with pytest.MonkeyPatch.context() as patch, toy_scenario(run.parent.parent / "toy"):
            patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
            analyze(builder.build())
    return other


@pytest.mark.parametrize(("arguments", "folder"), WRONG_OUTPUTS)
def test_a_path_that_cannot_be_written_ends_with_2_and_one_line(
    failed: Failed, run: Path, arguments: Sequence[str], folder: str
) -> None:
    Path("screen.xml").write_text("<hierarchy/>")
    names = {"RUN": str(run), "RUNS": str(run.parent), "OTHER": str(other_run(run)), "BUNDLE": "x.yaml"}
    code, text = failed(*(names.get(word, word.format(folder)) for word in arguments))
    assert code == 2
    assert folder in text.replace("\n", "")
    assert text.startswith("mplab: ")
    assert text.count("\n") == 1
    assert not Path("nosuch").exists()


@pytest.mark.parametrize("path", ["nosuch.yaml", ".", "/proc/nosuch/x.yaml", "x.yaml/y.yaml"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "{}"],
        ["run", "{}"],
        ["plan", "x.yaml", "--lab", "{}"],
        ["doctor", "--lab", "{}"],
        ["campaign", "run", "{}"],
        ["campaign", "tidy", "{}"],
        ["campaign", "install", "{}"],
        ["campaign", "resume", "--of", "{}"],
        ["links", "lint", "{}"],
        ["links", "show", "{}"],
        ["lab", "up", "--link", "{}"],
        ["lab", "device", "--model", "./{}"],
        ["router", "show", "{}"],
        ["proxy", "status", "--lab", "{}"],
        ["phone", "probe", "SERIAL", "--lab", "{}"],
        ["scenarios", "record", "app", "--dump", "{}"],
        ["reproduce", "{}"],
        ["report", "./{}"],
        ["show", "./{}", "1"],
        ["analyze", "./{}"],
    ],
    ids=" ".join,
)
def test_a_path_that_cannot_be_read_ends_with_2(failed: Failed, arguments: Sequence[str], path: str) -> None:
    code, text = failed(
        *(word.replace("./{}", path if path[0] in "/." else f"./{path}").format(path) for word in arguments)
    )
    assert code == 2
    assert text.removeprefix("mplab: ").strip()


def test_a_run_on_a_disk_that_takes_nothing_is_not_analysed_and_says_why(
    failed: Failed, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise OSError(30, "Read-only file system", str(run / "report" / ".index.html.x"))

    monkeypatch.setattr("mplab.run.hostside.concluding.analyze_run", refuse)
    code, text = failed("analyze", str(run))
    assert code == 1
    assert "Read-only file system: the analysis writes into the run directory. Make it writable" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["analyze", "nosuch.pcap"], "nosuch.pcap: no such file"),
        (["analyze", "--cross-check", "tshark", "nosuch.pcap"], "nosuch.pcap: there is no such file"),
        (["analyze", "there.pcapng"], "a capture, not a run. 'mptrace there.pcapng' reads it"),
        (["bundle", "RUN", "--license", "foo bar"], "An SPDX licence expression (CC-BY-4.0, CC0"),
        (["results", "export", "celsl", "--runs", "RUNS"], "unknown table 'celsl'. Did you mean 'cells'?"),
        (["figures", "RUN", "-f", "bytes-over-tim"], "Did you mean 'bytes-over-time'? Figures: "),
        (["figures", "RUN", "--cell", "0001-files-mptcp"], "Did you mean '00"),
        (["status", "--runs", "x.yaml"], "x.yaml: is a file, and a folder is needed"),
        (["plan", "x.yaml", "--lab", "vrtual-router"], "Did you mean 'virtual-router'? Allowed: virtual (the lab on"),
        (["plan", "x.yaml", "--phone", "pixel"], "--phone pixel: the virtual lab has one phone, without a name"),
    ],
)
def test_a_message_says_what_was_found_and_what_to_do(
    failed: Failed, run: Path, arguments: Sequence[str], words: str
) -> None:
    Path("there.pcapng").touch()
    names = {"RUN": str(run), "RUNS": str(run.parent)}
    code, text = failed(*(names.get(word, word) for word in arguments))
    assert code == 2
    assert words in text


def test_a_folder_whose_only_run_is_broken_has_no_trend(failed: Failed) -> None:
    broken = Path("runs") / "20260101T000000Z-demo-aaaaaa"
    broken.mkdir(parents=True)
    (broken / "manifest.json").write_text("{}", encoding="utf-8")
    code, text = failed("trend")
    assert code == 2
    assert "runs: no run in it can be read: " in text
    assert "manifest.json: key 'run_id' is missing" in text


def test_a_licence_is_kept_as_spdx_writes_it(run: Path, tmp_path: Path, failed: Failed) -> None:
    target = tmp_path / "run.tar.gz"
    code, text = failed("bundle", str(run), "-o", str(target), "--license", "cc-by-4.0", "--partial", "--json")
    assert (code, text.strip()) == (0, "")
    assert target.is_file()
