"""A lane repeats failed tests, and the summary lists what was repeated or skipped."""

import json
from pathlib import Path

import pytest

from tests import lane, summary

pytestmark = pytest.mark.long

FLAKY = """
from pathlib import Path

def test_good():
    pass

def test_second_time():
    mark = Path(__file__).with_suffix(".mark")
    first = not mark.exists()
    mark.touch()
    assert not first
"""
CRASHING = """
import os

def test_ends_the_process():
    os._exit(1)

def test_wrong():
    assert False
"""
SKIPPING = "import pytest\n\ndef test_never():\n    pytest.skip('no router')\n"
FAILING = "def test_wrong():\n    assert False\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Run":
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setattr(lane, "RESULTS", tmp_path / "results")
    return Run(tmp_path)


class Run:
    """A folder of tests that a lane runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lane(self, way: str, **files: str) -> tuple[int, list[summary.Outcomes]]:
        """Run test files in a lane; return its exit code and the outcomes."""
        (self.folder / "tests").mkdir()
        for name, text in files.items():
            (self.folder / "tests" / f"test_{name}.py").write_text(text)
        code = lane.main(["mine", way, "tests", "-q"])
        return code, summary.read(lane.RESULTS)


@pytest.mark.parametrize("way", ["together", "apart"])
def test_a_test_that_passes_when_repeated_is_listed(run: Run, way: str) -> None:
    code, tests = run.lane(way, flaky=FLAKY)
    assert code == 0
    assert {test.name: test.outcomes for test in tests} == {
        "test_good": ["passed"],
        "test_second_time": ["failed", "passed"],
    }
    assert "Passed only when repeated: 1" in summary.lines_of(tests)
    assert summary.problems_of(tests) == ["1 of 2 tests were repeated; at most 1% may be"]


@pytest.mark.parametrize("way", ["together", "apart"])
def test_a_test_that_always_fails_fails_the_lane(run: Run, way: str) -> None:
    code, tests = run.lane(way, failing=FAILING)
    assert code == 1
    assert [test.outcomes for test in tests] == [["failed"] * 3]
    assert summary.numbers_of(tests)["mine"].failed == 1


def test_a_file_of_which_every_test_was_skipped_is_a_problem(run: Run) -> None:
    code, tests = run.lane("together", skipping=SKIPPING, flaky=FLAKY)
    assert code == 0
    assert summary.without_a_run(tests) == ["tests/test_skipping.py"]
    assert any("no router" in line for line in summary.lines_of(tests))
    assert "tests/test_skipping.py: every test was skipped" in summary.problems_of(tests)


@pytest.mark.parametrize("way", ["together", "apart"])
def test_a_process_that_ends_early_fails_the_lane(run: Run, way: str) -> None:
    code, _ = run.lane(way, crashing=CRASHING)
    assert code == 1


def test_a_killed_process_fails_the_lane(run: Run) -> None:
    code, _ = run.lane("apart", killed=CRASHING.replace("os._exit(1)", "os.kill(os.getpid(), 9)"), flaky=FLAKY)
    assert code == 1


def events(*lines: str) -> list[str]:
    """Return events of ``go test -json`` from lines ``ACTION PACKAGE [TEST]``."""
    keys = ("Action", "Package", "Test")
    return [json.dumps(dict(zip(keys, line.split(), strict=False))) for line in lines]


def test_go_packages_that_end_without_all_of_their_tests_are_found() -> None:
    good = events("run a T1", "pass a T1", "pass a", "start b", "run b T1", "fail b T1", "fail b")
    repeated = events("run b T1", "pass b T1", "pass b")
    assert lane.ended_early([*good, *repeated]) == []
    assert lane.ended_early(events("run a T1", "pass a T1", "fail a")) == ["a"], "TestMain, or a race after the tests"
    assert lane.ended_early(events("run a T1", "fail a T1", "run a T2", "fail a")) == ["a"], "T2 ended the process"
    assert lane.ended_early([*good, *events("run b T1", "fail b")]) == ["b"], "a repetition ended the process"


def test_folders_of_tests_are_in_memory_if_there_is_enough_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_MEMORY", tmp_path)
    monkeypatch.setattr(lane, "_MEMORY_BYTES", 1)
    assert lane.memory_is_usable()
    monkeypatch.setattr(lane, "_MEMORY_BYTES", 1 << 60)
    assert not lane.memory_is_usable()
    monkeypatch.setattr(lane, "_MEMORY", tmp_path / "missing")
    assert not lane.memory_is_usable()
