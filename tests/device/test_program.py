"""``python -m mplab.device``, run as a separate program."""

import json
import signal
import subprocess
import sys

from tests.device.conftest import Adb, wait_until


def test_the_program_runs_a_device_until_it_is_interrupted(adb: Adb) -> None:
    command = [sys.executable, "-m", "mplab.device", "--phone", "android-10", "--serial", "PROGRAM1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            address = json.loads(program.stdout.readline())["address"]
            adb("connect", address)
            wait_until(lambda: adb.state(address) == "device", f"{address} is connected")
            assert adb.text("shell", "getprop ro.serialno", serial=address).strip() == "PROGRAM1"
        finally:
            program.send_signal(signal.SIGINT)
        assert program.wait(20) == 0
