"""Running mptrace over cells, with a stand-in that behaves as it does, and reading what it wrote."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.errors import ProgramMissingError
from analysis.run import Run, read_run
from analysis.tables import CONNECTIONS, SUBFLOWS, find_mptrace, make_tables, read_tables
from tests.unit.analysis.synthetic import MPTCP, Synthetic

TRACES = Path(__file__).parents[3] / "analysis" / "mptrace" / "testdata"
STAND_IN = """#!{python}
import sys, pathlib, os
*files, option, out = sys.argv[1:]
assert option == "-o" and all(pathlib.Path(f).is_file() for f in files), sys.argv
mode = os.environ.get("STAND_IN", "")
if mode == "bad":
    sys.exit("mptrace: phone-wlan0.pcapng: not a pcapng file")
os.mkdir(out)
for name in ("connections", "subflows"):
    pathlib.Path(out, name + ".parquet").write_text(" ".join(files))
if mode == "partly":
    print("cut off after packet 7", file=sys.stderr)
    sys.exit(1)
"""


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
        for name in ("phone-wlan0", "phone-rmnet0", "phone-lo", "proxy"):
            (cell / f"{name}.pcapng").write_bytes(b"x")
    return read_run(path)


def test_decodes_the_phones_own_interfaces(run: Run, program: Path) -> None:
    seen: list[str] = []
    assert make_tables(run.cells, program, done=lambda cell: seen.append(cell.id)) == []
    assert seen == [cell.id for cell in run.cells]
    for cell in run.cells:
        assert cell.directory is not None
        text = (cell.directory / "tables" / "subflows.parquet").read_text()
        assert text == "phone-rmnet0.pcapng phone-wlan0.pcapng"
        assert not (cell.directory / "tables.new").exists()


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
    assert run.cells[0].directory is not None
    assert (run.cells[0].directory / "tables").is_dir()


def test_the_program_is_needed_only_where_there_are_captures(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ProgramMissingError, match="make build"):
        make_tables(run.cells, tmp_path / "nowhere")
    for cell in run.cells:
        assert cell.directory is not None
        for capture in cell.directory.glob("*.pcapng"):
            capture.unlink()
    assert make_tables(run.cells, tmp_path / "nowhere") == []


def test_the_program_is_found_by_the_environment(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLAB_BIN", str(program.parent))
    assert find_mptrace() == program.resolve()
    assert os.access(find_mptrace(), os.X_OK)


def test_the_real_program_writes_the_columns_that_are_read(synthetic: Callable[..., Synthetic]) -> None:
    try:
        find_mptrace()
    except ProgramMissingError as missing:
        pytest.skip(str(missing))
    run = read_run(synthetic(repetitions=1, transports=(MPTCP,)).build())
    (cell,) = run.cells
    assert cell.directory is not None
    for interface in ("wlan0", "rmnet0"):
        shutil.copy(TRACES / f"two-paths-{interface}.pcapng", cell.directory / f"phone-{interface}.pcapng")
    assert make_tables(run.cells) == []
    tables = read_tables(cell)
    assert dict(tables["connections"].schema) == CONNECTIONS
    assert dict(tables["subflows"].schema) == SUBFLOWS
    assert set(tables["subflows"]["interface"]) == {"wlan0", "rmnet0"}
    before = (cell.directory / "tables" / "subflows.parquet").read_bytes()
    make_tables(run.cells)
    assert (cell.directory / "tables" / "subflows.parquet").read_bytes() == before


def test_reads_tables_and_gives_empty_ones_with_columns(synthetic: Callable[..., Synthetic]) -> None:
    run = read_run(synthetic(repetitions=1, name="other").build())
    cell = run.cells[0]
    assert cell.directory is not None
    assert read_tables(cell)["connections"].height == 1
    shutil.rmtree(cell.directory / "tables")
    empty = read_tables(cell)
    assert empty["connections"].columns == list(CONNECTIONS)
    assert empty["subflows"].columns == list(SUBFLOWS)
    assert empty["subflows"].is_empty()
