"""The event log is append-only and survives whatever kills its writer."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.base.errors import InputError, MplabError
from mplab.format.events import EventLog, read_events
from mplab.format.runevents import CellFinished, CellStep, RunEvent, RunInterrupted, RunResumed, RunStarted
from tests.fakes.eventlines import read_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def names(path: Path) -> list[str]:
    return [event.event for event in read_events(path, RunEvent)]


def test_events_are_read_as_they_were_written(path: Path) -> None:
    with EventLog(path, clock=lambda: 1_700_000_000.25) as log:
        written = [log.append(RunStarted()), log.append(CellStep(cell="0001-ä", step="probe\nnext"))]
    assert list(read_events(path, RunEvent)) == written
    assert read_lines(path)[1] == {"t": 1_700_000_000.25, "event": "cell_step", "cell": "0001-ä", "step": "probe\nnext"}
    assert path.stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_each_event_can_be_read_at_once(path: Path) -> None:
    with EventLog(path) as log:
        log.append(RunStarted())
        assert names(path) == ["run_started"]


def test_a_second_log_goes_on_where_the_first_ended(path: Path) -> None:
    for event in (RunStarted(), RunResumed()):
        with EventLog(path) as log:
            log.append(event)
    assert names(path) == ["run_started", "run_resumed"]


def test_threads_do_not_mix_their_lines(path: Path) -> None:
    with EventLog(path) as log, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: log.append(CellStep(step="x" * n)), range(200)))
    assert sorted(len(event["step"]) for event in read_lines(path)) == list(range(200))


@given(cut=st.integers(min_value=0, max_value=200))
def test_a_log_cut_anywhere_is_read_and_goes_on(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "events.jsonl"
    with EventLog(path) as log:
        written = [log.append(CellStep(step=step)) for step in ("prépare", "probe", "scenario")]
    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - cut)])
    left = list(read_events(path, RunEvent))
    assert left == written[: len(left)]
    with EventLog(path) as log:
        added = log.append(RunResumed())
    assert list(read_events(path, RunEvent)) == [*left, added]


def test_a_whole_last_line_without_its_end_is_kept(path: Path) -> None:
    path.write_text('{"t": 1, "event": "run_started"}', encoding="utf-8")
    assert names(path) == ["run_started"]
    with EventLog(path) as log:
        log.append(RunResumed())
    assert names(path) == ["run_started", "run_resumed"]


@pytest.mark.parametrize("damage", ["{", "[" * 100_000, "[]", '{"t": 1}', '{"event": "x", "t": "now"}', "\x00\x00"])
def test_damage_before_the_last_line_is_named(path: Path, damage: str) -> None:
    path.write_text(f'{{"t": 1, "event": "a"}}\n{damage}\n{{"t": 2, "event": "b"}}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"events\.jsonl:2: not an event: the file is damaged"):
        list(read_events(path, RunEvent))


def test_no_log_to_read(path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(read_events(path, RunEvent))


def test_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(MplabError, match="cannot be written: Is a directory"):
        EventLog(tmp_path)


def test_values_that_json_does_not_have_are_refused(path: Path) -> None:
    with EventLog(path) as log, pytest.raises(ValueError, match="finite number"):
        log.append(CellFinished(cell="a", outcome="ok", duration_s=float("nan")))
    assert names(path) == []


def test_text_that_utf_8_cannot_hold_is_written_all_the_same(path: Path) -> None:
    with EventLog(path) as log:
        log.append(RunInterrupted(reason="file \udcff is gone"))
    assert read_lines(path)[0]["reason"] == "file ? is gone"


def test_a_full_disk_leaves_whole_events_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def short_then_full(descriptor: int, data: bytes) -> int:
        if len(data) > 100:
            return write(descriptor, data[:50])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with EventLog(path) as log:
        log.append(RunStarted())
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", short_then_full)
            with pytest.raises(MplabError, match=r"^disk full: .*events\.jsonl cannot be written"):
                log.append(CellStep(step="x" * 100))
        assert path.read_bytes().count(b"\n") == 1
        log.append(RunInterrupted())
    assert [json.loads(line)["event"] for line in path.read_text(encoding="utf-8").splitlines()] == [
        "run_started",
        "run_interrupted",
    ]
