"""Old captures and runs are removed only by the owner's rules, also if the process is killed in between."""

import gzip
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mplab.analysis.errors import ProgramMissingError
from mplab.analysis.record.decode import captures, find_mptrace, make_tables
from mplab.analysis.record.run import read_run
from mplab.analysis.record.tables import read_tables
from mplab.base.lock import resource_lock
from mplab.campaign.retention import ASIDE, LOG, Action, apply_retention, plan_retention
from mplab.format.campaignfile import RetentionFile
from mplab.format.events import EventLog
from mplab.format.plan import CellSpec
from mplab.format.runevents import RunFinished, RunPlanned, RunResumed, RunStarted
from mplab.run.run_directory import RunDirectory
from tests.unit.record.conftest import cell_spec
from tests.unit.record.test_run_directory import manifest, record

pytestmark = pytest.mark.long

DAY = 86400.0
NOW = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
CAPTURES = ("phone-lo.pcapng", "phone-rmnet0.pcapng", "phone-wlan0.pcapng", "proxy.pcapng")
TRACES = Path(__file__).parents[3] / "analysis" / "mptrace" / "testdata"

Make = Callable[..., RunDirectory]


def rules(**keys: Any) -> RetentionFile:
    return RetentionFile.model_validate({"keep_last": 1, **keys})


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def make(runs: Path) -> Make:
    """Make a run of two cells with captures and tables that ended `days` days ago."""

    def make_run(
        days: float, *, name: str = "demo", tags: Iterable[str] = (), finished: bool = True, analysed: bool = True
    ) -> RunDirectory:
        ended = NOW - days * DAY
        stamp = datetime.fromtimestamp(ended - 60, UTC).strftime("%Y%m%dT%H%M%SZ")
        run = RunDirectory.create(runs, name, b"")
        run = RunDirectory(run.path.rename(runs / f"{stamp}-{name}-{run.path.name[-6:]}"))
        record = manifest(run)
        experiment = replace(record.experiment, name=name, tags=tuple(tags))
        run.write_manifest(record.model_copy(update={"experiment": experiment}))
        cells: list[CellSpec] = [cell_spec(1, "mptcp"), cell_spec(2, "wifi")]
        with EventLog(run.events_file, clock=lambda: ended) as log:
            log.append(RunPlanned(cells=tuple(cells), estimate_s=60.0))
            log.append(RunStarted())
            for cell in cells:
                _make_cell(run, cell, analysed=analysed)
            if finished:
                log.append(RunFinished(outcomes={"ok": 2}))
        if analysed:
            (run.path / "report").mkdir()
            (run.path / "report" / "summary.json").write_text("{}", encoding="utf-8")
        return run

    return make_run


def _make_cell(run: RunDirectory, cell: CellSpec, *, analysed: bool) -> None:
    folder, _ = run.begin_attempt(cell.id)
    listed = []
    for name in CAPTURES:
        (folder / name).write_bytes(f"{cell.id} {name}".encode() * 200)
        listed.append({"file": name, "interface": name, "node": "phone", "packets": 9, "dropped": 0, "snaplen": 96})
    earlier = folder / "attempts" / "1"
    earlier.mkdir(parents=True)
    (earlier / "phone-wlan0.pcapng").write_bytes(b"an attempt" * 50)
    if analysed:
        (folder / "tables").mkdir()
        (folder / "tables" / "connections.parquet").write_bytes(b"table")
    run.finish_cell(record(cell, captures=[{**item, "headers_only": True} for item in listed]))


def apply(actions: Iterable[Action], runs: Path, tmp_path: Path) -> list[str]:
    return [result.problem for result in apply_retention(tuple(actions), runs, lock_directory=tmp_path / "locks")]


def texts(actions: Iterable[Action]) -> list[tuple[str, str]]:
    return [(action.run.name, action.kind) for action in actions]


def content(run: RunDirectory) -> dict[str, bytes]:
    """Return the original content of every capture by its name, however it is stored."""
    originals: dict[str, bytes] = {}
    for path in sorted(run.cells_dir.rglob("*.pcapng*")):
        if not path.name.startswith("."):
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            name = path.relative_to(run.path).as_posix().removesuffix(".gz")
            assert originals.setdefault(name, data) == data
    return originals


def log(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / LOG).read_text(encoding="utf-8").splitlines()]


def test_nothing_is_touched_that_is_not_named(runs: Path, make: Make) -> None:
    old = make(900)
    make(1)
    assert texts(plan_retention(runs, rules(runs="365 d"), NOW)) == [(old.run_id, "run")]
    assert plan_retention(runs, rules(runs="1000 d"), NOW) == ()
    assert plan_retention(runs / "none", rules(runs="1 d"), NOW) == ()


def test_each_run_by_its_age(runs: Path, make: Make) -> None:
    ages = {400.0: "run", 40.0: "captures", 8.0: "compress"}
    expected = [(make(days).run_id, kind) for days, kind in ages.items()]
    make(2)
    actions = plan_retention(runs, rules(compress_after="7 d", captures="30 d", runs="365 d"), NOW)
    assert texts(actions) == expected
    assert (
        actions[1].text
        == f"{expected[1][0]}: remove 10 captures, {actions[1].size_bytes / 1000:.0f} kB (captures: 30 d)"
    )


def test_the_last_runs_of_each_experiment_lose_nothing(runs: Path, make: Make) -> None:
    demo = [make(days).run_id for days in (50, 40, 30)]
    other = make(60, name="other").run_id
    make(20, finished=False)  # does not count: it has no result
    actions = texts(plan_retention(runs, rules(runs="10 d", compress_after="5 d", keep_last=2), NOW))
    assert actions == [(other, "compress"), (demo[0], "run"), (demo[1], "compress"), (demo[2], "compress")]


def test_what_is_never_touched(runs: Path, make: Make) -> None:
    make(1)
    make(100, tags=["paper"])
    make(101, finished=False)
    damaged, renamed, newer = make(102), make(103), make(104)
    (damaged.path / "events.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    renamed.path.rename(runs / "20260101T000000Z-demo-000000")
    changed = json.loads(newer.manifest_file.read_text(encoding="utf-8")) | {"format": 2}
    newer.manifest_file.write_text(json.dumps(changed), encoding="utf-8")
    elsewhere = make(105).path.rename(runs.parent / "elsewhere")
    (runs / "20260102T000000Z-demo-abcdef").symlink_to(elsewhere)
    (runs / "20260103T000000Z-demo-abcdef").mkdir()
    (runs / "my notes").mkdir()
    assert plan_retention(runs, rules(runs="10 d", keep=["paper"]), NOW) == ()


def test_captures_that_were_not_looked_at_stay(runs: Path, make: Make) -> None:
    make(1)
    make(40, analysed=False)
    unread = make(41)
    shutil.rmtree(unread.cell_dir("0001-web-mptcp-baseline-r1") / "tables")
    assert plan_retention(runs, rules(captures="30 d"), NOW) == ()


def test_compressed_captures_are_the_same(runs: Path, make: Make, tmp_path: Path) -> None:
    run = make(10)
    before = content(run)
    actions = plan_retention(runs, rules(compress_after="7 d"), NOW)
    (result,) = apply_retention(actions, runs, lock_directory=tmp_path / "locks")
    assert (result.problem, content(run)) == ("", before)
    assert not list(run.path.rglob("*.pcapng"))
    size = sum(path.stat().st_size for path in run.path.rglob("*.gz"))
    assert result.freed_bytes == result.action.size_bytes - size > 0
    assert [event["event"] for event in log(run.path)] == ["capture_compressed"] * 10
    assert plan_retention(runs, rules(compress_after="7 d"), NOW) == ()


def test_removed_captures_are_written_down(runs: Path, make: Make, tmp_path: Path) -> None:
    run = make(40)
    make(1)
    remaining = sorted(path for path in run.path.rglob("*") if path.is_file() and path.suffix != ".pcapng")
    assert apply(plan_retention(runs, rules(captures="30 d"), NOW), runs, tmp_path) == [""]
    assert content(run) == {}
    assert sorted([*remaining, run.path / LOG]) == sorted(path for path in run.path.rglob("*") if path.is_file())
    first = log(run.path)[0]
    assert first["event"] == "capture_removed"
    assert first["rule"] == "captures: 30 d"
    assert len(first["sha256"]) == 64
    assert len(log(run.path)) == 10


def test_a_run_is_removed_whole(runs: Path, make: Make, tmp_path: Path) -> None:
    run, new = make(400), make(1)
    assert apply(plan_retention(runs, rules(runs="365 d"), NOW), runs, tmp_path) == [""]
    assert sorted(path.name for path in runs.iterdir()) == sorted([new.run_id, LOG])
    (event,) = log(runs)
    assert (event["event"], event["run"], event["rule"]) == ("run_removed", run.run_id, "runs: 365 d")


def test_a_run_that_somebody_uses_is_left(runs: Path, make: Make, tmp_path: Path) -> None:
    run = make(400)
    make(1)
    actions = plan_retention(runs, rules(runs="365 d"), NOW)
    with resource_lock(run.lock_name, run_id="a resume", directory=tmp_path / "locks"):
        (problem,) = apply(actions, runs, tmp_path)
    assert "in use by run a resume" in problem
    with EventLog(run.events_file) as events:
        events.append(RunResumed())  # the run was not finished when the lock was released
    (problem,) = apply(actions, runs, tmp_path)
    assert "no longer a finished run" in problem
    assert run.manifest_file.is_file()


def test_links_are_not_followed(runs: Path, make: Make, tmp_path: Path) -> None:
    run = make(400)
    make(1)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "phone-x.pcapng").write_bytes(b"another's")
    cell = run.cell_dir("0001-web-mptcp-baseline-r1")
    (cell / "folder").symlink_to(outside)
    (cell / "phone-y.pcapng").symlink_to(outside / "phone-x.pcapng")
    assert apply(plan_retention(runs, rules(captures="30 d"), NOW), runs, tmp_path) == [""]
    assert apply(plan_retention(runs, rules(runs="365 d"), NOW), runs, tmp_path) == [""]
    assert (outside / "phone-x.pcapng").read_bytes() == b"another's"
    assert not run.path.exists()


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Run `work` in a process that is killed at its change `number` of file names; return whether it was killed."""
    child = os.fork()
    if child == 0:
        left = [number]

        def audit(event: str, _arguments: object) -> None:
            if event in {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate"}:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(audit)
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("kind", ["compress", "captures", "run"])
def test_killed_at_any_point(kind: str, runs: Path, make: Make, tmp_path: Path) -> None:
    ask = {"compress": {"compress_after": "7 d"}, "captures": {"captures": "7 d"}, "run": {"runs": "7 d"}}[kind]
    requested = rules(**ask)
    pristine = make(10)
    make(1)
    saved = tmp_path / "saved"
    shutil.copytree(runs, saved)
    before = content(pristine)
    all_files = {path.relative_to(pristine.path) for path in pristine.path.rglob("*")}

    def work() -> None:
        apply_retention(plan_retention(runs, requested, NOW), runs, lock_directory=tmp_path / "locks")

    number = 1
    while killed_at(number, work):
        run = RunDirectory(pristine.path)
        listed = [path.parent.name for path in runs.glob("*/manifest.json")]
        if kind == "compress":
            assert content(run) == before
        elif kind == "captures":
            for cell in read_run(run.path).cells:
                names = [path.name for path in captures(cell)]
                assert names in ([], ["phone-rmnet0.pcapng", "phone-wlan0.pcapng"])
        elif run.run_id in listed:
            assert all_files <= {path.relative_to(run.path) for path in run.path.rglob("*")}
        work()  # the next night finishes the work
        if kind == "compress":
            assert content(run) == before
            assert not [path for path in run.path.rglob("*") if path.name.endswith((".pcapng", ".new"))]
        elif kind == "captures":
            assert content(run) == {}
        else:
            assert not run.path.exists()
            assert not (runs / ASIDE).exists()
        shutil.rmtree(runs)
        shutil.copytree(saved, runs)
        number += 1
    assert number > 5


def test_tables_of_compressed_captures_are_the_same(runs: Path, make: Make, tmp_path: Path) -> None:
    try:
        program = find_mptrace()
    except ProgramMissingError:
        pytest.skip("needs build/bin/mptrace")
    run = make(10)
    cell = run.cell_dir("0001-web-mptcp-baseline-r1")
    shutil.rmtree(run.cell_dir("0002-web-wifi-baseline-r1"))
    for name in CAPTURES:
        (cell / name).unlink()
    for name in ("rmnet0", "wlan0"):
        shutil.copy(TRACES / f"two-paths-{name}.pcapng", cell / f"phone-{name}.pcapng")
    shutil.copy(TRACES / "two-paths-wlan0.pcapng", cell / "proxy.pcapng")

    def tables() -> dict[Path, bytes]:
        read = read_run(run.path)
        assert make_tables(read.cells, program, same_clock=True) == []
        assert read_tables(read.cells[0])["connections"].height
        return {path.relative_to(cell): path.read_bytes() for path in (cell / "tables").rglob("*.parquet")}

    before = tables()
    assert apply(plan_retention(runs, rules(compress_after="7 d"), NOW), runs, tmp_path) == [""]
    assert {path.name for path in cell.glob("*.gz")} == {
        "phone-rmnet0.pcapng.gz",
        "phone-wlan0.pcapng.gz",
        "proxy.pcapng.gz",
    }
    assert tables() == before


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({}, "retention needs 'compress_after', 'captures' or 'runs'"),
        ({"captures": "30 d", "runs": "30 d"}, "runs 30 d: must be more than captures, 30 d"),
        ({"compress_after": "7 d", "runs": "12 h"}, "runs 12 h: must be more than compress_after, 7 d"),
        ({"runs": "0 d"}, "must be more than 0"),
        ({"runs": "1 week"}, "unknown unit 'week'"),
        ({"runs": "9 d", "keep_last": 0}, "greater than or equal to 1"),
        ({"runs": "9 d", "logs": "1 d"}, "Extra inputs"),
    ],
)
def test_rules_that_are_wrong(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        RetentionFile.model_validate(keys)


def test_a_problem_with_one_run_does_not_keep_the_others(runs: Path, make: Make, tmp_path: Path) -> None:
    first, second = make(50), make(40)
    make(1)
    actions = list(plan_retention(runs, rules(runs="30 d"), NOW))
    actions[0] = replace(actions[0], run=runs / "20260101T000000Z-gone-abcdef")
    problems = apply(actions, runs, tmp_path)
    assert "no longer a finished run" in problems[0]
    assert problems[1] == ""
    assert (first.path.exists(), second.path.exists()) == (True, False)
