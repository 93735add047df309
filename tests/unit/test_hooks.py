"""The host's commands around a run and its cells; permission for commands of foreign files."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.base import polling
from mplab.base.errors import InputError, LabNotReadyError
from mplab.format.hooks import Argv, Hooks, parse_command
from mplab.format.record import json_of
from mplab.run.hostside.hooks import HookRunner, check_programs
from mplab.run.hostside.ready import allow, check_allowed
from mplab.run.run_directory import RunDirectory
from tests.fakes.eventlines import read_lines

CELL = "0001-web-mptcp-baseline-r1"
SAY = "import os, sys; print(*(os.environ.get('MPLAB_' + n) for n in 'HOOK RUN CELL ATTEMPT OUTCOME'.split()), sep='|')"


def python(code: str) -> Argv:
    return (sys.executable, "-c", code)


def around(hooks: Hooks, root: Path) -> HookRunner:
    return HookRunner(hooks, RunDirectory.create(root, "x", b""))


def log(runner: HookRunner, cell: str = "") -> str:
    directory = runner._directory
    folder = directory.partial_dir(cell) if cell else directory.path
    return (folder / "logs" / "hooks.log").read_text()


def of_cell(runner: HookRunner, name: str, outcome: str = "") -> str:
    request: dict[str, Any] = {"name": name, "cell": CELL, "attempt": 2, "outcome": outcome}
    return str(runner.answer(request)["problem"])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ("logger begins", ("logger", "begins")),
        ("logger 'two words' $HOME *", ("logger", "two words", "$HOME", "*")),
        (["logger", "two words"], ("logger", "two words")),
        ("/usr/bin/true", ("/usr/bin/true",)),
        ("sh -c 'a | b > c'", ("sh", "-c", "a | b > c")),
    ],
)
def test_commands(found: object, words: Argv) -> None:
    assert parse_command(found) == words


def test_what_hooks_are_told_and_where_their_words_go(tmp_path: Path) -> None:
    say = python(SAY)
    runner = around(Hooks(before_run=(say,), after_run=(say,), before_cell=(say,), after_cell=(say,)), tmp_path)
    run = str(runner._directory.path.resolve())
    with runner:
        assert of_cell(runner, "before_cell") == ""
        assert of_cell(runner, "after_cell", "invalid") == ""
        runner.outcome = "ok"
    output = [line for line in log(runner).splitlines() if not line.startswith("#")]
    assert output == [f"before_run|{run}||None|", f"after_run|{run}||None|ok"]
    output = [line for line in log(runner, CELL).splitlines() if not line.startswith("#")]
    assert output == [f"before_cell|{run}|{CELL}|2|", f"after_cell|{run}|{CELL}|2|invalid"]


def test_a_run_does_not_begin_when_its_hook_fails(tmp_path: Path) -> None:
    fails, never = python("import sys; print('no power'); sys.exit(3)"), python("print('never')")
    runner = around(Hooks(before_run=(fails, never), after_run=(python(SAY),)), tmp_path)
    with pytest.raises(LabNotReadyError, match=r"hook before_run: '.*': exit code 3: no power"), runner:
        pytest.fail("it began")
    assert "|failed" in log(runner), "what it has begun is ended"
    assert "\nnever" not in log(runner), "nothing is run after what failed"
    events = read_lines(runner._directory.events_file)
    assert [(event["event"], event["hook"]) for event in events] == [("hook_failed", "before_run")]


def test_what_fails_after_a_run_is_noted(tmp_path: Path) -> None:
    runner = around(Hooks(after_run=(("false",),)), tmp_path)
    with runner:
        pass
    (event,) = read_lines(runner._directory.events_file)
    assert (event["hook"], event["reason"]) == ("after_run", "hook after_run: 'false': exit code 1")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("false",), "hook before_cell: 'false': exit code 1"),
        (("/no/such program",), "hook before_cell: ''/no/such program'': cannot be run: No such file or directory"),
        (python("import os; os.kill(os.getpid(), 9)"), "exit code -9"),
        (python("print('one'); print('two'); raise SystemExit(1)"), "exit code 1: two"),
    ],
)
def test_how_they_fail(command: Argv, problem: str, tmp_path: Path) -> None:
    assert of_cell(around(Hooks(before_cell=(command,)), tmp_path), "before_cell").endswith(problem)


def test_one_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    left = tmp_path / "left"
    child = f"import time; time.sleep(1.5); open({str(left)!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    runner = around(Hooks.model_validate({"before_cell": [python(code)], "timeout": "300 ms"}), tmp_path)
    assert of_cell(runner, "before_cell").endswith("not ended within 300 ms")
    time.sleep(1.6)
    assert not left.exists()


BEGINS = """
import pathlib, sys
from mplab.run.hostside.hooks import HookRunner
from mplab.run.run_directory import RunDirectory
from mplab.format.hooks import Hooks
wait = (sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
hooks = Hooks(before_run=(wait,), after_run=(("sh", "-c", "echo $MPLAB_OUTCOME"),))
HookRunner(hooks, RunDirectory(pathlib.Path(sys.argv[1]))).__enter__()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_command_does_not_outlive_who_runs_it(number: int, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "x", b"")
    output = run.path / "logs" / "hooks.log"
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", f"import signal; signal.signal(2, signal.default_int_handler){BEGINS}"]
    with subprocess.Popen([*command, str(run.path)], env=environment, stderr=subprocess.DEVNULL) as who:
        wait_until(lambda: output.is_file() and output.read_text().count("\n") > 1, "the command runs")
        pid = int(output.read_text().splitlines()[1])
        assert psutil.pid_exists(pid)
        who.send_signal(number)
    assert ("\ninterrupted\n" in output.read_text()) is (number == signal.SIGINT), "what is after it is run"
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", "it is gone")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    assert polling.wait_until(condition, 60.0, interval_s=0.02), what


def test_no_words_of_a_shell_are_read(tmp_path: Path) -> None:
    runner = around(Hooks(before_cell=(parse_command("echo $HOME * `ls`"),)), tmp_path)
    assert of_cell(runner, "before_cell") == ""
    assert "$HOME * `ls`" in log(runner, CELL)


def test_programs_that_are_missing_are_named_before_anything_is_begun() -> None:
    check_programs(Hooks(before_run=(("true",),)))
    with pytest.raises(LabNotReadyError, match="hook after_cell: no program 'no-such-program' on this host"):
        check_programs(Hooks(before_run=(("true",),), after_cell=(("no-such-program", "x"),)))


def test_commands_of_others_are_not_run_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    hooks = Hooks(before_run=(("touch", "x"),))
    with pytest.raises(InputError, match=r"somebody's: its hooks .*: before_run: 'touch x'.*allow_hooks=True"):
        check_allowed(hooks, "somebody's")
    check_allowed(Hooks(), "somebody's")
    allow(hooks)
    check_allowed(hooks, "my own")
    with pytest.raises(InputError, match="touch y"):
        check_allowed(hooks.model_copy(update={"after_run": (("touch", "y"),)}), "somebody's")


def test_hooks_as_the_manifest_has_them() -> None:
    hooks = Hooks.model_validate({"before_run": [["a", "b c"]], "timeout": "30 s"})
    assert json_of(hooks) == {"before_run": [["a", "b c"]], "timeout": "30 s"}
    assert (json_of(Hooks()), bool(Hooks()), bool(hooks)) == ({}, False, True)
