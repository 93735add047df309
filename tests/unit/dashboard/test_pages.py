"""Pages show the state of runs and campaigns without scripts, and escape all of it."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from mplab.base import lock
from mplab.campaign.night import Disk
from mplab.dashboard import render
from mplab.dashboard.app import status_of
from mplab.dashboard.cells import finished_cells
from mplab.dashboard.days import last_days
from mplab.dashboard.search import search
from mplab.dashboard.watch import MOST_RUNS, Watcher, disks_of
from mplab.drivers.phone.adb.quarantine import Quarantine
from mplab.drivers.phone.adb.server import default_home
from mplab.format.times import END_OF_TIME_S
from mplab.run.progress import RECENT_S
from tests.unit.campaign.nights import T0
from tests.unit.dashboard.lab import EVIL, Folders


def texts(page: str, path: str) -> list[str]:
    return [" ".join(" ".join(element.itertext()).split()) for element in html.fromstring(page).xpath(path)]


def test_the_first_page_shows_all(folders: Folders) -> None:
    running, killed, ended = folders.running(), folders.running("web"), folders.ended()
    folders.night()
    with folders.held(running):
        page = render.overview(Watcher([folders.path]).snapshot(now=T0 + 3000))
    now = texts(page, "//section[@id='running']")[0]
    assert "5 ok, 1 invalid of 20; about 23 min 20 s left" in now
    assert "Now: 0007-web-mptcp-baseline-r1 : probe" in now
    assert "Next: 0008-web-mptcp-baseline-r1" in now
    cards = texts(page, "//section[@id='resources']//li")
    assert any("phone-3" in card and "mplab campaign release phone-3 --campaigns" in card for card in cards)
    assert html.fromstring(page).xpath("//svg[@aria-label='0 of the last 1 tries were good']")
    failures = texts(page, "//section[@id='failures']//tbody/tr")
    assert any(killed in row and "killed" in row for row in failures)
    assert any(row.endswith("log") and "03-calls phone-3: no answer" in row for row in failures)
    assert not any(running in row for row in failures)
    experiments = texts(page, "//section[@id='experiments']//tbody/tr")
    assert any("Multipath TCP takes 0.70 s" in row for row in experiments)
    rows = texts(page, "//section[@id='runs']//tbody/tr")
    assert any(ended in row and "finished" in row and row.endswith("report") for row in rows)
    assert not html.fromstring(page).xpath("//main//script")
    assert EVIL not in page
    ids = html.fromstring(page).xpath("//@id")
    assert len(ids) == len(set(ids))


def test_phones_in_quarantine_are_shown(folders: Folders) -> None:
    Quarantine(default_home() / "quarantine").put("R58 <b>", "no root shell")
    page = render.overview(Watcher([folders.path]).snapshot())
    (card,) = texts(page, "//section[@id='resources']//li")
    assert "no root shell (since 20" in card
    assert card.endswith("Release it with mplab phone release 'R58 <b>'")


def test_days_are_summed_up(folders: Folders) -> None:
    folders.ended()
    folders.night()
    snapshot = Watcher([folders.path]).snapshot(now=snapshot_time(folders))
    days = {day.date.isoformat(): day for day in last_days(snapshot)}
    assert len(days) == 28
    busy = [day for day in days.values() if day.runs]
    assert len(busy) == 1
    assert (busy[0].kind, busy[0].mark) == ("ok", "✓")
    assert busy[0].text.endswith("1 run, 3 cells ok")
    night = last_days(Watcher([folders.path]).snapshot(now=T0 + 3000))[-1]
    assert (night.kind, len(night.campaigns)) == ("failed", 1)
    assert night.text.endswith("1 campaign, 0 runs, 0 cells ok")


def snapshot_time(folders: Folders) -> float:
    started = Watcher([folders.path]).snapshot().runs[0].started
    assert started is not None
    return started + 3600


def test_a_run_page_lists_its_cells(folders: Folders) -> None:
    run = folders.running()
    snapshot = Watcher([folders.runs]).snapshot()
    entry = snapshot.run(run)
    assert entry is not None
    (folders.runs / run / "report" / "cells").mkdir(parents=True)
    (folders.runs / run / "report" / "cells" / "0001-web-mptcp-baseline-r1.html").write_text("page")
    cells = finished_cells(folders.runs, run)
    page = render.run_page(snapshot, entry, cells, ["proxy.log"])
    rows = texts(page, "//section[@id='cells']//tbody/tr")
    assert len(rows) == 6
    assert rows[0].startswith("0006-web-mptcp-baseline-r1 ok 1 min 40 s")
    assert "invalid" in rows[3]
    assert EVIL not in page
    assert html.fromstring(page).xpath("//section[@id='cells']//a/@href") == [
        f"/runs/{run}/report/cells/0001-web-mptcp-baseline-r1.html"
    ]
    assert texts(page, "//code[@class='command']") == [f"mplab resume {folders.runs / run}"]


def test_search_finds_runs_and_values(folders: Folders) -> None:
    first, second = folders.ended(), folders.ended(23, name="other")
    runs = Watcher([folders.path]).snapshot().runs
    assert [run.name for run in search(runs, "OTHER").runs] == [second]
    found = search(runs, "download Multipath")
    assert {(run.name, line.transport, line.median) for run, line in found.values} == {
        (first, "mptcp", 0.7),
        (second, "mptcp", 0.7),
    }
    assert search(runs, "files no-such-word").run_count == 0
    assert search(runs, " ").run_count == 0
    page = render.search_page(Watcher([folders.path]).snapshot(), EVIL, search(runs, EVIL))
    assert EVIL not in page


def test_what_cannot_be_read_is_shown(folders: Folders, tmp_path: Path) -> None:
    broken = folders.runs / "20260101T000000Z-broken-abcdef"
    broken.mkdir()
    (broken / "manifest.json").write_text("{}")
    linked = folders.runs / "20260102T000000Z-linked-abcdef"
    linked.mkdir()
    (linked / "manifest.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "secret.json").write_text(json.dumps({"run_id": "secret"}))
    night = folders.campaigns / "20260101T000000Z-night-abcdef"
    night.mkdir()
    (night / "campaign.json").write_text("[")
    whole = folders.ended()
    with (folders.runs / whole / "events.jsonl").open("ab") as log:
        log.write(b'{"t": 1, "event": "cell_finished"}\nno json\n' + b"[" * 100_000 + b"\n\xff\n")
    (folders.runs / whole / "report" / "summary.json").write_text("{")
    snapshot = Watcher([folders.path]).snapshot()
    states = {run.name: (run.state, bool(run.problem)) for run in snapshot.runs}
    assert states == {
        broken.name: ("unreadable", True),
        linked.name: ("unreadable", True),
        whole: ("finished", False),
    }
    assert [bool(campaign.problem) for campaign in snapshot.campaigns] == [True]
    page = render.overview(snapshot)
    assert any("key 'run_id' is missing" in row for row in texts(page, "//section[@id='failures']//tbody/tr"))
    assert "secret" not in page


def changed_manifest(folders: Folders, run: str, **changes: object) -> None:
    file = folders.runs / run / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def started_before_all_time(folders: Folders) -> str:
    run = folders.ended(name="bad")
    (folders.runs / run / "events.jsonl").unlink()
    changed_manifest(folders, run, started="0001-01-01T00:00:00+00:00")
    return run


def started_after_all_time(folders: Folders) -> str:
    run = folders.ended(name="bad")
    (folders.runs / run / "events.jsonl").unlink()
    changed_manifest(folders, run, started="9999-12-31T23:59:59-23:59")
    return run


def has_a_very_long_name(folders: Folders) -> str:
    run = folders.running("bad")
    lock.default_lock_directory().mkdir()  # a lock's name contains the run's name, and is too long for the file system
    return (folders.runs / run).rename(folders.runs / ("b" * 250)).name


@pytest.mark.parametrize("bad", [started_before_all_time, started_after_all_time, has_a_very_long_name])
def test_a_bad_run_does_not_hide_the_others(folders: Folders, bad: Any) -> None:
    good, name = folders.ended(), bad(folders)
    watcher = Watcher([folders.path])
    for now in (T0, T0 + 1):  # what is read again, and what is kept
        snapshot = watcher.snapshot(now=now)
        assert {run.name for run in snapshot.runs} == {good, name}
        found = snapshot.run(name)
        assert found is not None
        assert bool(found.problem) is (bad is has_a_very_long_name)
        assert found.started is None or found.state == "killed"
        for page in (render.overview(snapshot), render.run_page(snapshot, found, [], [])):
            assert name in page
        assert len(last_days(snapshot)) == 28


def test_times_of_a_running_run_can_be_out_of_range(folders: Folders) -> None:
    run = folders.running()
    log = folders.runs / run / "events.jsonl"
    lines = log.read_text()
    log.write_text(re.sub(r'("(estimate|duration)_s": ?)[0-9.]+', r"\g<1>1e308", lines))
    assert log.read_text().count("1e308") > 5
    with folders.held(run):
        snapshot = Watcher([folders.path]).snapshot()
        assert run in render.overview(snapshot)
        json.dumps(status_of(snapshot), allow_nan=False)


def test_a_folder_without_permission_does_not_hide_the_others(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, closed = folders.ended(), folders.ended(23)
    whole = os.stat

    def refusing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        if closed in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", refusing)  # root, too, runs this test
    assert [run.name for run in Watcher([folders.path]).snapshot().runs] == [good]


def test_a_campaign_that_cannot_be_read_does_not_hide_runs(folders: Folders) -> None:
    run, night = folders.ended(), folders.night()
    lock.default_lock_directory().mkdir()
    long = folders.campaigns / ("c" * 250)
    (folders.campaigns / night).rename(long)
    snapshot = Watcher([folders.path]).snapshot()
    assert ([entry.name for entry in snapshot.runs], snapshot.campaigns[0].problem != "") == ([run], True)
    assert "File name too long" in render.overview(snapshot)


def test_only_what_has_changed_is_read_again(folders: Folders) -> None:
    run, ended = folders.running(), folders.ended()
    watcher = Watcher([folders.path])
    with folders.held(run):
        first, same = watcher.snapshot(now=1e9), watcher.snapshot(now=1e9)
        assert same.version == first.version
        assert same.run(ended) is first.run(ended)
        folders.finish_cell(run)
        later = watcher.snapshot(now=1e9)
        assert later.version == first.version + 1
        assert later.run(ended) is first.run(ended)
        entry = later.run(run)
        assert entry is not None
        assert (entry.state, entry.progress.done) == ("running", 7)
        assert watcher.snapshot(now=1e9 + 60).version == later.version + 1  # elapsed times are shown
    entry = watcher.snapshot(now=1e9 + 60).run(run)
    assert entry is not None
    assert entry.state == "killed"


def test_a_log_that_is_replaced_is_read_from_its_start(folders: Folders) -> None:
    run = folders.running()
    watcher = Watcher([folders.path])
    watcher.snapshot(now=1e9)
    log = folders.runs / run / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:4]))
    entry = watcher.snapshot(now=1e9).run(run)
    assert entry is not None
    assert entry.progress.done == 1


def test_a_long_log_is_read_in_parts(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folders.ended()
    size = (folders.runs / run / "events.jsonl").stat().st_size
    monkeypatch.setattr("mplab.dashboard.watch._AT_ONCE_BYTES", size // 2 + 1)
    watcher = Watcher([folders.path])
    entries = [watcher.snapshot(now=T0).run(run) for _ in range(2)]
    assert [entry is not None and entry.state for entry in entries] == ["planned", "finished"]


def test_disks_of_equal_size_are_two_disks(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.dashboard.watch.disk_of", lambda _: Disk(free=1, total=2))
    shown = disks_of([folders.runs, folders.campaigns, folders.path / "none", Path("/proc")])
    assert [folder for folder, _ in shown] == [folders.runs, Path("/proc")]


def test_runs_of_another_user_are_not_called_killed(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    run, night = folders.running(), folders.night()
    monkeypatch.setattr(os, "getuid", lambda: folders.path.stat().st_uid + 1)
    watcher = Watcher([folders.path])
    updated = watcher.snapshot(now=T0).runs[0].progress.updated
    assert updated is not None
    states = []
    for now in (updated + 1, updated + RECENT_S + 1):
        found = watcher.snapshot(now=now).run(run)
        assert found is not None
        states.append(found.state)
    assert states == ["running", "unknown"]
    late = watcher.snapshot(now=updated + RECENT_S + 1)
    assert "Another user" in render.run_page(late, late.runs[0], [], [])
    days = {day.kind for day in last_days(late)[-2:]}  # the run can be of the day before
    assert ("bad" in days, run in texts(render.overview(late), "//section[@id='failures']")[0]) == (True, False)
    phases = []
    for now in (updated + 1, updated + RECENT_S + 1):  # the events of its run count, too
        found_night = watcher.snapshot(now=now).campaign(night)
        assert found_night is not None
        assert found_night.night is not None
        phases.append((found_night.night.phase, found_night.night.can_resume))
    assert phases == [("running", False), ("unknown", False)]


def test_a_lock_that_is_held_counts_for_a_run_of_another_user(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folders.running()
    with folders.held(run):
        monkeypatch.setattr(os, "getuid", lambda: folders.path.stat().st_uid + 1)
        found = Watcher([folders.path]).snapshot(now=END_OF_TIME_S / 10).run(run)
    assert found is not None
    assert found.state == "running"


def test_a_run_with_the_name_of_another_one_is_mentioned(folders: Folders, tmp_path: Path) -> None:
    run = folders.ended()
    shutil.copytree(folders.runs / run, tmp_path / "other" / run)
    (tmp_path / "link").symlink_to(folders.runs)
    page = render.overview(Watcher([folders.path, tmp_path / "link"]).snapshot())
    assert "the same name" not in page
    page = render.overview(Watcher([folders.path, tmp_path / "other"]).snapshot())
    assert f"the same name: {tmp_path / 'other' / run}" in texts(page, "//section[@id='runs']")[0]


def test_hundreds_of_runs_are_listed_in_pages(folders: Folders) -> None:
    template = folders.runs / folders.ended()
    manifest = (template / "manifest.json").read_text()
    for number in range(250):
        copy = folders.runs / f"20260101T{number:06}Z-many-abcdef"
        copy.mkdir()
        (copy / "manifest.json").write_text(manifest)
    watcher = Watcher([folders.path])
    snapshot = watcher.snapshot()
    assert (len(snapshot.runs), snapshot.left_out, MOST_RUNS > 1000) == (251, 0, True)
    pages = [render.runs_page(snapshot, number) for number in (1, 2, 3)]
    assert [len(texts(page, "//tbody/tr")) for page in pages] == [100, 100, 51]
    assert html.fromstring(pages[1]).xpath("//a[@rel]/@href") == ["/runs?page=1", "/runs?page=3"]
    read = time.process_time()
    watcher.snapshot(now=1e9)
    again_s = time.process_time() - read
    read = time.process_time()
    Watcher([folders.path]).snapshot(now=1e9)
    assert again_s < time.process_time() - read  # unchanged files are not read again


def test_older_runs_than_the_limit_are_left_out(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mplab.dashboard.watch.MOST_RUNS", 1)
    folders.ended()
    newest = folders.ended(23)
    snapshot = Watcher([folders.path]).snapshot()
    assert ([run.name for run in snapshot.runs], snapshot.left_out) == ([newest], 1)
    assert "1 older ones are not shown" in render.overview(snapshot)
