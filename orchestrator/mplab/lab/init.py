"""Run the first process in a lab's namespaces: start the orchestrator, reap processes, exit with the host process.

Run as ``python -m mplab.lab.init LIFELINE_FD[,FD…] -- COMMAND…``; COMMAND inherits the descriptors ``FD…``. The
lifeline is a pipe from the host process, which started this one (`mplab.base.enter`). Each byte is the number of a
signal to forward to COMMAND. End of file means that the host process has died; then this process exits. The kernel then
ends every process of the PID namespace and removes the namespaces with their interfaces and mounts.
"""

import os
import signal
import subprocess
import sys
import threading

_LOST_EXIT_CODE = 137


def _pass_on_signals(lifeline: int, child: subprocess.Popen[bytes]) -> None:
    while data := os.read(lifeline, 1):
        try:
            child.send_signal(data[0])
        except ProcessLookupError:
            return
    os._exit(_LOST_EXIT_CODE)


def _prepare_mounts() -> None:
    """Mount empty file systems over ``/run`` and ``/dev/shm``, to hide the host's sockets and temporary files."""
    for target in ("/run", "/dev/shm"):  # noqa: S108 - mount points, not files
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "mplab", target], check=True)


def main(argv: list[str]) -> int:
    """Run ``argv[2:]`` as a child process in the lab. Return its exit code (128 + n after signal n)."""
    (lifeline, *descriptors), command = map(int, argv[0].split(",")), argv[2:]
    os.set_inheritable(lifeline, False)
    _prepare_mounts()
    child = subprocess.Popen(command, pass_fds=descriptors)
    for ignored in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
    ):  # only now: a child inherits ignored signals
        signal.signal(ignored, signal.SIG_IGN)
    threading.Thread(target=_pass_on_signals, args=(lifeline, child), daemon=True).start()
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
