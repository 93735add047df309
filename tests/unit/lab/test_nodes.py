"""Programs in nodes: processes that a dead program has left are ended too."""

import os
import signal
import socket
import subprocess
import sys

from mplab.base.nodes import NodeProcess

MASTER = """
import os, socket, sys, time
listening = socket.create_server(("127.0.0.1", 0))
if os.fork():
    print(listening.getsockname()[1], flush=True)
time.sleep(60)
"""
"""A server with a worker that also has its socket."""


def test_the_workers_of_a_server_that_has_died_are_ended_with_it() -> None:
    master = subprocess.Popen([sys.executable, "-c", MASTER], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert master.stdout is not None
    port = int(master.stdout.readline())
    master.stdout.close()
    master.send_signal(signal.SIGKILL)
    process = NodeProcess(master)  # type: ignore[arg-type]
    assert process.wait(10) == -9
    socket.create_connection(("127.0.0.1", port)).close()
    assert process.stop() == -9
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
    try:
        os.killpg(master.pid, 0)
    except ProcessLookupError:
        return
    raise AssertionError("its worker still runs")
