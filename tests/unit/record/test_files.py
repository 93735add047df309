"""Files are complete or absent, also when the disk is full."""

import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mplab.base.errors import MplabError
from mplab.base.files import replace, write_new


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Limit all files of this process to `size_bytes`; the kernel refuses more, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_written_whole_and_readable_for_others(tmp_path: Path) -> None:
    write_new(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert not (tmp_path / "file").stat().st_mode & 0o133
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_never_rewritten(tmp_path: Path) -> None:
    write_new(tmp_path / "file", b"first")
    with pytest.raises(MplabError, match="file: exists already and is never rewritten"):
        write_new(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first"


def test_replaced_at_once(tmp_path: Path) -> None:
    replace(tmp_path / "file", b"first")
    replace(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"second"


def test_a_disk_that_fills_up_keeps_the_old_content(tmp_path: Path) -> None:
    replace(tmp_path / "file", b"old")
    with largest_file(1000), pytest.raises(MplabError, match=r"^disk full: .*file cannot be written"):
        replace(tmp_path / "file", b"x" * 2000)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_other_reasons_are_told_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(MplabError, match="nowhere/file: cannot be written: No such file or directory"):
        replace(tmp_path / "nowhere" / "file", b"")


FILL = """
import sys
from pathlib import Path
from mplab.base.errors import MplabError
from mplab.format.events import EventLog, read_events
from mplab.format.runevents import CellStep, RunEvent
folder = Path(sys.argv[1])
log = EventLog(folder / "events.jsonl")
try:
    while True:
        log.append(CellStep(step="x" * 1000))
except MplabError as error:
    print(str(error).partition(":")[0])
print(all(event.step == "x" * 1000 for event in read_events(folder / "events.jsonl", RunEvent)))
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare here")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    script = (
        'mount -t tmpfs -o size=64k none "$1" || exit 77; exec "$2" -c "$3" "$1"'  # a disk of 64 kB, for this process
    )
    result = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            str(tmp_path),
            sys.executable,
            FILL,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    if result.returncode == 77 or result.stderr.startswith("unshare:"):
        pytest.skip(f"no private mounts here: {result.stderr.strip()}")
    assert result.stdout.splitlines() == ["disk full", "True"], result.stderr
