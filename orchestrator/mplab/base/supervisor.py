"""Supervise COMMAND, the orchestrator of a lab without namespaces; end it if its host process dies.

Run as ``python -m mplab.base.supervisor LIFELINE_FD[,FD…] -- COMMAND…``; COMMAND inherits the descriptors ``FD…``.
The host process is the one that started this supervisor (`mplab.base.enter`) and writes to the lifeline, a pipe. Each
byte is the number of a signal to forward to COMMAND. End of file means that the host process has died: COMMAND then
receives SIGTERM, and SIGKILL after `END_TIMEOUT_S`. The supervisor is a subreaper: it adopts the processes that a
killed COMMAND leaves running, and ends them.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import psutil

from mplab.base.kernel import adopt_orphans, die_with_parent

END_TIMEOUT_S = 120.0
"""Time for COMMAND to release all devices, seconds. `mplab.base.undo` can revert the remaining changes later."""

_ORPHANS_S = 5.0
_POLL_S = 0.05


def _watch(lifeline: int, child: subprocess.Popen[bytes]) -> None:
    while data := os.read(lifeline, 1):
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(data[0])
    with contextlib.suppress(ProcessLookupError):
        child.terminate()
    time.sleep(END_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError):
        child.kill()


def _end_orphans() -> None:
    """End the processes that COMMAND left running. They exist only if COMMAND was killed."""
    for number, patience_s in ((signal.SIGTERM, _ORPHANS_S), (signal.SIGKILL, _ORPHANS_S)):
        deadline = time.monotonic() + patience_s
        while left := psutil.Process().children(recursive=True):
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)
            psutil.wait_procs(left, timeout=_POLL_S)
            if time.monotonic() > deadline:
                break
        else:
            return


def main(argv: list[str]) -> int:
    """Run ``argv[2:]`` as a child and return its exit code (128 + n after signal n)."""
    (lifeline, *descriptors), command = map(int, argv[0].split(",")), argv[2:]
    os.set_inheritable(lifeline, False)
    adopt_orphans()
    parent = os.getpid()
    child = subprocess.Popen(
        command,
        pass_fds=descriptors,
        # If this process is killed, the kernel sends SIGTERM to COMMAND, which then releases the devices.
        preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),  # noqa: PLW1509 - prctl only
    )
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # not earlier: a child inherits ignored signals
        signal.signal(ignored, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(lifeline, child), daemon=True).start()
    code = child.wait()
    _end_orphans()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
