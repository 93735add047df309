"""Run one lane of the tests, repeat what failed, and record every attempt for `tests.summary`.

``python -m tests.lane NAME together FOLDER… [OPTION…]``: one pytest process.
``python -m tests.lane NAME apart FOLDER… [OPTION…]``: one process with separate namespaces for each file, so that the
labs of parallel files do not interfere.
``python -m tests.lane NAME go PACKAGE…``: Go tests with the race detector.

Options are those of pytest. Failed tests run again at the end, one at a time, up to twice: another program of the host
can disturb a measurement, but a real error fails each time. `tests.summary` lists the tests that needed it.

Each attempt writes JUnit XML to ``build/tests/NAME/FILE.ATTEMPT.xml``. With `MPLAB_COVERAGE` in the environment, the
lane also records the lines that it covers, for `tests.covered`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "tests"
COVERAGE = ROOT / "build" / "coverage"
COVERAGE_VARIABLE = "MPLAB_COVERAGE"
COVERAGE_CONFIG = COVERAGE / "python.ini"
GO_PROFILE = COVERAGE / "go.out"

_APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "sh", "-c")
_OWN_LOCKS = 'mkdir -p /run/lock && mount -t tmpfs tmpfs /run/lock && "$@"; exit $?'
_OK, _FAILED, _NOTHING = 0, 1, 5
"""Exit codes of pytest."""
_REPEATS = 2
_IN_MEMORY = {"quick", "unit"}
"""Lanes whose tests write several 100,000 small files, which a disk takes longer to delete than a test to run."""
_MEMORY, _MEMORY_BYTES = Path("/dev/shm"), 4 << 30  # noqa: S108 - each lane makes a folder of its own in it
_RACE_OPTIONS = "atexit_sleep_ms=50"
"""Options of the race detector, of which 1 s of sleep at the end of each program is the default: tests start and end
hundreds of them, and read their results before the end."""


class Runner:
    """Runner of pytest for one lane.

    Args:
        results: folder for JUnit XML.
        state: folder for the state of labs and for pytest's lists of failed tests.
        options: options for pytest.
    """

    def __init__(self, results: Path, state: Path, options: Sequence[str]) -> None:
        self._results = results
        self._state = state
        self._options = options

    def run(self, name: str, paths: Sequence[Path], attempt: int, prefix: Sequence[str] = ()) -> "tuple[int, str]":
        """Run the tests of `paths`, or those that failed in the attempt before; return pytest's exit code and output.

        The exit code is 0 if there is nothing to run in the first attempt. The output is "" if tests print directly.

        Args:
            name: name of this part of the lane, in file names.
            paths: test files and folders.
            attempt: 0 for the first attempt.
            prefix: command that runs pytest in separate namespaces; without it, pytest prints directly.
        """
        measured = ("coverage", "run", f"--rcfile={COVERAGE_CONFIG}", "-m") if _measures() else ()
        argv = [sys.executable, "-m", *measured, "pytest", *map(str, paths), *self._options]
        argv += ["-o", f"cache_dir={self._state / name}", "-o", "junit_family=xunit1"]
        argv += [f"--junit-xml={self._results / f'{name}.{attempt}.xml'}"]
        if attempt:
            argv += ["--last-failed", "--last-failed-no-failures", "none"]
            argv += ["--numprocesses", "0"] if "--numprocesses" in self._options else []
        result = subprocess.run(
            [*prefix, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if prefix else None,
            stderr=subprocess.STDOUT if prefix else None,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, **({"XDG_STATE_HOME": str(self._state / f"{name}.state")} if prefix else {})},
        )
        # A repetition without tests: the attempt before ended without a record of what failed.
        nothing = _FAILED if attempt else _OK
        return nothing if result.returncode == _NOTHING else result.returncode, result.stdout or ""


def together(runner: Runner, paths: Sequence[Path]) -> int:
    """Run all tests in one pytest process, and return its exit code."""
    code, _ = runner.run("all", paths, 0)
    for attempt in range(1, _REPEATS + 1):
        if code == _FAILED:
            print("── Once more, what failed:", flush=True)
            code, _ = runner.run("all", paths, attempt)
    return code


def apart(runner: Runner, paths: Sequence[Path]) -> int:
    """Run each test file in a separate process and separate namespaces, and return 1 if one failed."""
    # Largest file first, so that at the end no processor is idle while another one runs a long file.
    files = sorted(
        (file for path in paths for file in (path.glob("test_*.py") if path.is_dir() else (path,))),
        key=lambda file: (-file.stat().st_size, file),
    )
    printing = Lock()
    separable = _can_be_apart()
    prefix = (*_APART, _OWN_LOCKS, "sh") if separable else ("env",)

    def run(file: Path, attempt: int = 0) -> int:
        began = time.monotonic()
        code, output = runner.run(file.stem, [file], attempt, prefix)
        with printing:
            print(output, f"── {file}: {time.monotonic() - began:.0f} s", sep="", flush=True)
        return code

    with ThreadPoolExecutor((os.cpu_count() or 1) if separable else 1) as jobs:
        codes = dict(zip(files, jobs.map(run, files), strict=True))
    for attempt in range(1, _REPEATS + 1):
        failed = [file for file, code in codes.items() if code == _FAILED]
        if failed:
            print("── Once more, what failed:", flush=True)
        for file in failed:
            codes[file] = run(file, attempt)
    wrong = [str(file) for file, code in codes.items() if code != _OK]
    print(f"── {len(files)} files, {'all passed' if not wrong else 'failed: ' + ', '.join(wrong)}", flush=True)
    if not files:
        return _NOTHING
    return _FAILED if wrong else _OK


def memory_is_usable() -> bool:
    """Return whether there is enough memory for the folders of tests, and whether programs in them can be started."""
    try:
        room = os.statvfs(_MEMORY)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize >= _MEMORY_BYTES and not room.f_flag & os.ST_NOEXEC


def _measures() -> bool:
    """Return whether the lane records coverage."""
    return bool(os.environ.get(COVERAGE_VARIABLE))


def _can_be_apart() -> bool:
    """Return whether this user can create the namespaces and mount in them; only root can."""
    try:
        return subprocess.run([*_APART, _OWN_LOCKS, "sh", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def go(results: Path, packages: Sequence[str]) -> int:
    """Run the tests of Go packages with the race detector, or with coverage; return the exit code."""
    events = results / "go.jsonl"
    argv = [
        "go",
        "tool",
        "gotestsum",
        "--format=pkgname",
        f"--junitfile={results / 'go.0.xml'}",
        f"--jsonfile={events}",
    ]
    argv += [f"--packages={' '.join(packages)}"]
    if _measures():  # a repetition would overwrite the profile
        argv += ["--", "-covermode=atomic", f"-coverpkg={','.join(packages)}", f"-coverprofile={GO_PROFILE}"]
    else:  # the large number: a disturbance can fail many tests at once, and all of them run again
        argv += [f"--rerun-fails={_REPEATS}", "--rerun-fails-max-failures=1000", "--rerun-fails-abort-on-data-race"]
        argv += ["--", "-race"]
    argv += ["-vet=off", "-timeout=20m"]  # `tools/go-checks` has called vet with all of its analyzers
    environment = {**os.environ, "CGO_ENABLED": "1", "GORACE": _RACE_OPTIONS}
    code = subprocess.run(argv, check=False, env=environment).returncode
    ended = ended_early(events.read_text(encoding="utf-8").splitlines())
    if ended:
        print(f"── Ended before all tests had run: {', '.join(ended)}", flush=True)
    return code or (_FAILED if ended else _OK)


def ended_early(events: Iterable[str]) -> list[str]:
    """Return the packages that failed without a failed test, or while a test ran: gotestsum repeats no other tests.

    Args:
        events: lines of ``go test -json``, of all attempts in their order.
    """
    running: dict[str, set[str]] = {}
    failed: set[str] = set()
    ended: set[str] = set()
    for line in events:
        event = json.loads(line)
        package, test, action = event.get("Package", ""), event.get("Test", ""), event["Action"]
        if test and action == "run":
            running.setdefault(package, set()).add(test)
        elif test and action in {"pass", "fail", "skip"}:
            running.get(package, set()).discard(test)
            failed |= {package} if action == "fail" else set()
        elif not test and action in {"pass", "fail", "skip"}:
            if action == "fail" and (package not in failed or running.get(package)):
                ended.add(package)
            failed.discard(package)
            running.pop(package, None)
    return sorted(ended)


def main(arguments: Sequence[str]) -> int:
    """Run a lane, and return the exit code of the worst of its parts."""
    # A background process of a shell ignores SIGINT; so would its children, some of which the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lane, way, *words = arguments
    results = RESULTS / lane
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    if way == "go":
        return go(results, words)
    paths = [Path(word) for word in words if Path(word).exists()]
    options = [word for word in words if not Path(word).exists()]
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory(prefix="mplab-tests-"))
        if lane in _IN_MEMORY and memory_is_usable():
            folders = stack.enter_context(tempfile.TemporaryDirectory(prefix="mplab-", dir=_MEMORY))
            options.append(f"--basetemp={folders}")
        runner = Runner(results, Path(state), options)
        return {"together": together, "apart": apart}[way](runner, paths)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
