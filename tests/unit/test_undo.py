"""Every change is undone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.undo import UndoError, UndoJournal, UndoStack

ROOT = Path(__file__).parents[2]

DIE = """
import os, sys
from pathlib import Path
from mplab.base.undo import UndoJournal, UndoStack
folder = Path(sys.argv[1])
with UndoStack(UndoJournal(folder / "journal")) as undo:
    for name in ("first", "second", "third"):
        undo.register(name, lambda: None, commands=[["sh", "-c", f"echo {name} >> {folder}/undone"]])
    undo.register("not for others", lambda: None)
    os._exit(9)
"""


def fail(text: str) -> None:
    raise RuntimeError(text)


def test_actions_run_in_reverse() -> None:
    calls: list[str] = []
    with UndoStack() as undo:
        for name in ("first", "second", "third"):
            undo.register(name, lambda name=name: calls.append(name))  # type: ignore[misc]
        assert calls == []
    assert calls == ["third", "second", "first"]


def test_every_action_is_tried_and_the_failures_are_named() -> None:
    calls: list[str] = []
    undo = UndoStack()
    undo.register("phone: route", lambda: calls.append("route"))
    undo.register("phone: endpoint", lambda: fail("no such device"))
    undo.register("phone: sysctl", lambda: fail("read-only"))
    with (
        pytest.raises(UndoError, match=r"^not undone: phone: sysctl: read-only; phone: endpoint: no such device$"),
        undo,
    ):
        pass
    assert calls == ["route"]


def test_the_error_of_the_block_stays_the_error() -> None:
    undo = UndoStack()
    undo.register("phone: route", lambda: fail("no such device"))
    with pytest.raises(ValueError, match="the real error") as caught, undo:
        raise ValueError("the real error")
    assert caught.value.__notes__ == ["not undone: phone: route: no such device"]


def test_an_interrupt_during_undo_comes_after_the_last_action() -> None:
    calls: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    undo = UndoStack()
    undo.register("first", lambda: calls.append("first"))
    undo.register("second", interrupted)
    with pytest.raises(KeyboardInterrupt), undo:
        pass
    assert calls == ["first"]


def test_nothing_is_undone_twice() -> None:
    calls: list[str] = []
    with UndoStack() as undo:
        undo.register("once", lambda: calls.append("once"))
        assert undo.undo_all() == []
    assert calls == ["once"]


def die(folder: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", DIE, str(folder)], cwd=ROOT, check=False)
    assert dead.returncode == 9


def test_what_a_killed_process_left_is_undone_at_the_next_start(tmp_path: Path) -> None:
    die(tmp_path)
    recovered = UndoJournal.recover(tmp_path / "journal")
    assert [(item.name, item.failure) for item in recovered] == [("third", ""), ("second", ""), ("first", "")]
    assert (tmp_path / "undone").read_text(encoding="utf-8") == "third\nsecond\nfirst\n"
    assert UndoJournal.recover(tmp_path / "journal") == []
    assert list((tmp_path / "journal").iterdir()) == []


def test_the_journal_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    with UndoJournal(tmp_path) as journal:
        entry = journal.add("phone: route", [["false"]])
        assert UndoJournal.recover(tmp_path) == []
        journal.done(entry)
    assert list(tmp_path.iterdir()) == []


def test_a_living_owner_is_known_by_pid_and_start_time_alone(tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path)
    journal.add("phone: route", [["true"]])
    journal.close()  # as if the lock had been lost
    (path,) = tmp_path.iterdir()
    assert UndoJournal.recover(tmp_path) == []
    header, entry = path.read_text(encoding="utf-8").splitlines()
    reused = {**json.loads(header), "start": 1}
    path.write_text(f"{json.dumps(reused)}\n{entry}\n", encoding="utf-8")
    assert [item.name for item in UndoJournal.recover(tmp_path)] == ["phone: route"]


def test_the_change_is_on_disk_before_it_is_made_and_gone_after_its_undo(tmp_path: Path) -> None:
    seen: list[str] = []

    def lines() -> list[str]:
        (path,) = tmp_path.iterdir()
        return path.read_text(encoding="utf-8").splitlines()

    with UndoJournal(tmp_path) as journal:
        with UndoStack(journal) as undo:
            undo.register("phone: route", lambda: seen.extend(lines()), commands=[["ip", "route", "flush"]])
            assert json.loads(lines()[-1]) == {"id": 1, "name": "phone: route", "commands": [["ip", "route", "flush"]]}
        assert json.loads(seen[-1])["id"] == 1
        assert json.loads(lines()[-1]) == {"done": 1}
    assert list(tmp_path.iterdir()) == []


def test_a_failed_undo_stays_for_the_next_start(tmp_path: Path) -> None:
    with UndoJournal(tmp_path) as journal, pytest.raises(UndoError), UndoStack(journal) as undo:
        undo.register("phone: route", lambda: fail("not now"), commands=[["true"]])
    (path,) = tmp_path.iterdir()
    assert '"phone: route"' in path.read_text(encoding="utf-8")


def test_a_journal_on_a_full_disk_stops_no_undo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    undo = UndoStack(UndoJournal(tmp_path))
    for name in ("first", "second"):
        undo.register(name, lambda name=name: calls.append(name), commands=[["true"]])  # type: ignore[misc]
    monkeypatch.setattr(os, "fsync", lambda _: fail("No space left on device"))
    with pytest.raises(UndoError, match="second: No space left on device; first: No space left"), undo:
        pass
    assert calls == ["second", "first"]


def make_dead(folder: Path, *lines: str) -> Path:
    folder.chmod(0o700)
    path = folder / "1-dead.jsonl"
    path.write_text("\n".join(['{"format": 1, "pid": 999999999, "start": 1, "boot": "x"}', *lines]), encoding="utf-8")
    return path


def test_commands_that_fail_are_told_and_tried_again_next_time(tmp_path: Path) -> None:
    make_dead(
        tmp_path,
        '{"id": 1, "name": "fine", "commands": [["true"]]}',
        '{"id": 2, "name": "fails", "commands": [["sh", "-c", "echo broken >&2; exit 3"], ["true"]]}',
        '{"id": 3, "name": "not there", "commands": [["/nonexistent/program"]]}',
    )
    first = {item.name: item.failure for item in UndoJournal.recover(tmp_path)}
    assert first["fine"] == ""
    assert first["fails"].endswith("exit code 3: broken")
    assert "No such file" in first["not there"]
    assert [item.name for item in UndoJournal.recover(tmp_path)] == ["not there", "fails"]


def test_a_line_cut_by_the_kill_was_never_followed_by_its_change(tmp_path: Path) -> None:
    make_dead(tmp_path, '{"id": 1, "name": "whole", "commands": [["true"]]}', '{"id": 2, "name": "cut", "comm')
    assert [item.name for item in UndoJournal.recover(tmp_path)] == ["whole"]


def test_commands_in_a_folder_that_others_can_write_are_not_run(tmp_path: Path) -> None:
    make_dead(tmp_path, f'{{"id": 1, "name": "evil", "commands": [["touch", "{tmp_path}/evil"]]}}')
    tmp_path.chmod(0o777)
    with pytest.raises(LabNotReadyError, match="others may write"):
        UndoJournal.recover(tmp_path)
    assert not (tmp_path / "evil").exists()


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = make_dead(tmp_path / "elsewhere", '{"id": 1, "name": "linked", "commands": [["true"]]}')
    (tmp_path / "journal").mkdir(mode=0o700)
    (tmp_path / "journal" / "1.jsonl").symlink_to(target)
    assert UndoJournal.recover(tmp_path / "journal") == []


def test_nothing_to_recover(tmp_path: Path) -> None:
    assert UndoJournal.recover(tmp_path / "nowhere") == []
    with UndoJournal(tmp_path):
        (path,) = tmp_path.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.name.startswith(f"{os.getpid()}-")
