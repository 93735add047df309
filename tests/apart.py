"""Run the files of test folders in parallel, each in its own namespaces, so that their labs do not interfere.

``python -m tests.apart tests/integration [OPTION…]``; options are those of pytest. Failed tests run again at the end,
one file at a time, and a last time if they fail again: another program of the host can disturb a measurement, but a
real error fails each time.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

_APART = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "sh", "-c")
_OWN_LOCKS = 'mkdir -p /run/lock && mount -t tmpfs tmpfs /run/lock && "$@"; exit $?'
_OK, _FAILED, _NOTHING = 0, 1, 5
"""Exit codes of pytest."""
_REPEATS = 2


class Runner:
    """Runner of test files.

    Args:
        state: folder for the state of their labs and for pytest's lists of failed tests.
        options: options for pytest.
    """

    def __init__(self, state: Path, options: Sequence[str]) -> None:
        self._state = state
        self._options = options
        self._printing = Lock()
        self.apart = _can_be_apart()

    def run(self, file: Path, *more: str) -> int:
        """Run one file, print its output, and return pytest's exit code; 0 if the file has no tests to run."""
        argv = [sys.executable, "-m", "pytest", str(file), *self._options, *more]
        argv += ["-o", f"cache_dir={self._state / file.stem}"]
        if self.apart:
            argv = [*_APART, _OWN_LOCKS, "sh", *argv]
        home = self._state / f"{file.stem}.state"
        began = time.monotonic()
        result = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, "XDG_STATE_HOME": str(home)},
        )
        with self._printing:
            print(result.stdout, f"── {file}: {time.monotonic() - began:.0f} s", sep="", flush=True)
        return _OK if result.returncode == _NOTHING else result.returncode


def _can_be_apart() -> bool:
    """Return whether this user can create the namespaces and mount in them; only root can."""
    try:
        return subprocess.run([*_APART, _OWN_LOCKS, "sh", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def main(arguments: Sequence[str]) -> int:
    """Run the test files; return the largest exit code."""
    # A background process of a shell ignores SIGINT; so would its children, some of which the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folders = [Path(word) for word in arguments if Path(word).exists()]
    options = [word for word in arguments if not Path(word).exists()]
    # Largest file first, so that at the end no processor is idle while another one runs a long file.
    files = sorted(
        (file for folder in folders for file in (folder.glob("test_*.py") if folder.is_dir() else (folder,))),
        key=lambda file: (-file.stat().st_size, file),
    )
    with tempfile.TemporaryDirectory(prefix="mplab-tests-") as state:
        runner = Runner(Path(state), options)
        with ThreadPoolExecutor((os.cpu_count() or 1) if runner.apart else 1) as jobs:
            codes = dict(zip(files, jobs.map(runner.run, files), strict=True))
        for _ in range(_REPEATS):
            failed = [file for file, code in codes.items() if code == _FAILED]
            if failed:
                print("── Once more, what failed:", flush=True)
            for file in failed:
                codes[file] = runner.run(file, "--last-failed", "--last-failed-no-failures", "none")
    wrong = [str(file) for file, code in codes.items() if code != _OK]
    print(f"── {len(files)} files, {'all passed' if not wrong else 'failed: ' + ', '.join(wrong)}", flush=True)
    return max(codes.values(), default=_NOTHING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
