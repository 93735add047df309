"""Running mptrace over cells, with a stand-in that behaves like it."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.analysis.errors import ProgramMissingError
from mplab.analysis.record.decode import find_mptrace, jobs, make_tables
from mplab.analysis.record.run import Run, read_run
from mplab.analysis.record.schema import SCHEMAS
from mplab.analysis.record.tables import read_tables
from tests.unit.analysis.synthetic import MPTCP, Synthetic

TRACES = Path(__file__).parents[4] / "analysis" / "mptrace" / "testdata"
STAND_IN = """#!{python}
import json, os, pathlib, sys
*arguments, option, out = sys.argv[1:]
assert option == "-o", sys.argv
mode = os.environ.get("STAND_IN", "")
if mode == "bad" or (mode == "bad ends" and arguments[0] == "ends"):
    sys.exit("mptrace: phone-wlan0.pcapng: not a pcapng file")
os.mkdir(out)
for name in ("connections", "subflows"):
    pathlib.Path(out, name + ".parquet").write_text(json.dumps(arguments))
if mode == "partly":
    print("cut off after packet 7", file=sys.stderr)
    sys.exit(1)
"""
LAB = ["--network", "wlan0=wifi", "--network", "rmnet0=cellular"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "mptrace"
    path.parent.mkdir()
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def run(synthetic: Callable[..., Synthetic]) -> Run:
    path = synthetic(repetitions=1).build()
    for cell in (path / "cells").iterdir():
        for name in ("phone-wlan0", "phone-rmnet0"):
            (cell / f"{name}.pcapng").write_bytes(b"x")
    return read_run(path)


def folder_of(run: Run, index: int = 0) -> Path:
    folder = run.cells[index].directory
    assert folder is not None
    return folder


def arguments(folder: Path) -> list[str]:
    """Return the arguments with which the stand-in wrote this folder."""
    words: list[str] = json.loads((folder / "subflows.parquet").read_text())
    return words


def test_decodes_the_phones_own_interfaces(run: Run, program: Path) -> None:
    seen: list[str] = []
    assert make_tables(run.cells, program, done=lambda cell: seen.append(cell.id)) == []
    assert seen == [cell.id for cell in run.cells]
    for index in range(len(run.cells)):
        folder = folder_of(run, index)
        assert arguments(folder / "tables") == ["phone-rmnet0.pcapng", "phone-wlan0.pcapng", *LAB]
        assert not (folder / "tables.new").exists()
        assert not (folder / "tables" / "lo").exists()
        assert not (folder / "tables" / "ends").exists()


def test_the_agents_log_and_the_keys_are_used_where_the_cell_has_them(run: Run, program: Path) -> None:
    logs = folder_of(run) / "logs"
    logs.mkdir()
    (logs / "agent.jsonl").write_text("{}\n")
    (logs / "tls-keys.txt").write_text("")
    make_tables(run.cells, program)
    assert arguments(folder_of(run) / "tables")[-2:] == ["--proxy-log", "logs/agent.jsonl"]
    (logs / "tls-keys.txt").write_text("CLIENT_RANDOM 1 2\n")
    make_tables(run.cells, program)
    assert arguments(folder_of(run) / "tables")[-2:] == ["--keys", "logs/tls-keys.txt"]


def test_loopback_and_both_ends_have_tables_of_their_own(run: Run, program: Path) -> None:
    folder = folder_of(run)
    for name in ("phone-lo", "proxy"):
        (folder / f"{name}.pcapng").write_bytes(b"x")
    assert make_tables(run.cells, program) == []
    assert arguments(folder / "tables")[:2] == ["phone-rmnet0.pcapng", "phone-wlan0.pcapng"]
    assert arguments(folder / "tables" / "lo") == ["phone-lo.pcapng", "--join-loopback", *LAB]
    phone = ["--phone", "phone-rmnet0.pcapng", "--phone", "phone-wlan0.pcapng"]
    assert arguments(folder / "tables" / "ends") == ["ends", *phone, "--proxy", "proxy.pcapng"]


def test_both_ends_that_do_not_match_leave_the_other_tables(
    run: Run, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder_of(run) / "proxy.pcapng").write_bytes(b"x")
    monkeypatch.setenv("STAND_IN", "bad ends")
    (problem,) = make_tables(run.cells, program)
    assert problem.message.startswith("both ends: mptrace ended with exit code 1")
    assert (folder_of(run) / "tables" / "subflows.parquet").is_file()
    assert not (folder_of(run) / "tables" / "ends").exists()


def test_a_bad_capture_is_a_problem_of_its_cell(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", "bad")
    problems = make_tables(run.cells, program)
    assert [p.cell for p in problems] == [cell.id for cell in run.cells]
    assert "not a pcapng file" in problems[0].message
    assert read_tables(run.cells[0])["subflows"].is_empty()


def test_a_capture_that_is_cut_keeps_its_tables(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", "partly")
    problems = make_tables(run.cells[:1], program)
    assert problems[0].message == "the captures are readable in part only: cut off after packet 7"
    assert (folder_of(run) / "tables").is_dir()


def test_the_program_is_needed_only_where_there_are_captures(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ProgramMissingError, match="make setup"):
        make_tables(run.cells, tmp_path / "nowhere")
    for index in range(len(run.cells)):
        for capture in folder_of(run, index).glob("*.pcapng"):
            capture.unlink()
    assert make_tables(run.cells, tmp_path / "nowhere") == []


def test_the_program_is_found_by_the_environment(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLAB_BIN", str(program.parent))
    assert find_mptrace() == program.resolve()
    assert os.access(find_mptrace(), os.X_OK)


def test_jobs_name_files_relative_to_the_cell(run: Run) -> None:
    folder = folder_of(run)
    (job,) = jobs(folder, sorted(folder.glob("phone-*.pcapng")))
    assert not any(str(folder) in word for word in job.arguments)


def test_the_ends_of_a_virtual_lab_have_one_clock(run: Run) -> None:
    folder = folder_of(run)
    (folder / "proxy.pcapng").write_bytes(b"packets")
    files = sorted(folder.glob("phone-*.pcapng"))
    arguments = [jobs(folder, files, same_clock=same_clock)[-1].arguments for same_clock in (False, True)]
    assert [word for word in arguments[1] if word not in arguments[0]] == ["--same-clock"]
    (sent,) = (job for job in jobs(folder, files, same_clock=True) if job.name == "proxy")
    assert sent.arguments[0] == "proxy.pcapng"
    assert "proxy" not in {job.name for job in jobs(folder, files, same_clock=False)}, "its times would be others"
    assert run.manifest.same_clock == (run.manifest.lab.kind == "virtual")


def test_the_real_program_writes_the_columns_that_are_read(synthetic: Callable[..., Synthetic]) -> None:
    try:
        find_mptrace()
    except ProgramMissingError as missing:
        pytest.skip(str(missing))
    run = read_run(synthetic(repetitions=1, transports=(MPTCP,)).build())
    folder = folder_of(run)
    for interface in ("wlan0", "rmnet0"):
        shutil.copy(TRACES / f"two-paths-{interface}.pcapng", folder / f"phone-{interface}.pcapng")
    assert make_tables(run.cells) == []
    tables = read_tables(run.cells[0])
    assert {name: dict(tables[name].schema) for name in tables} == SCHEMAS
    assert set(tables["subflows"]["network"]) == {"wifi", "cellular"}
    before = (folder / "tables" / "directions.parquet").read_bytes()
    make_tables(run.cells)
    assert (folder / "tables" / "directions.parquet").read_bytes() == before
