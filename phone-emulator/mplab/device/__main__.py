"""``python -m mplab.device``: run an emulated Android device until Ctrl-C.

With the arguments ``serve SETTINGS`` it is the process that `Device` starts for a device.
"""

import argparse
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import get_args

from mplab.base.errors import MplabError
from mplab.device.android.model import phone_names
from mplab.device.device import Device
from mplab.device.process import main as serve
from mplab.device.settings import DeviceSettings, Trust

_POLL_S = 0.2


def main(argv: list[str]) -> int:
    """Start a device, print its facts as one line of JSON, and wait until the device ends. Return the exit code."""
    if argv[:1] == ["serve"]:
        return serve(argv)
    parser = argparse.ArgumentParser(
        prog="python -m mplab.device",
        description="Run an emulated Android device until Ctrl-C: the device side of adb, and a phone behind it. "
        "It prints one line of JSON with its serial number, and its address for 'adb connect'.",
    )
    parser.add_argument("--phone", default="android-13", metavar="NAME|FILE", help=f"{', '.join(phone_names())}")
    parser.add_argument("--port", type=int, default=0, help="TCP port of adbd; 0: any free port")
    parser.add_argument("--serial", default="", help="replace the serial number of the phone file")
    parser.add_argument(
        "--trust", choices=get_args(Trust), default="any", help="hosts that adbd accepts; listed: --key"
    )
    parser.add_argument("--key", type=Path, action="append", default=[], help="file adbkey.pub of a trusted host")
    options = parser.parse_args(argv)
    try:
        keys = tuple(line for file in options.key for line in file.read_text().splitlines() if line.strip())
        settings = DeviceSettings(
            phone=options.phone, port=options.port, serial=options.serial, trust=options.trust, keys=keys
        )
        with Device(settings) as device, suppress(KeyboardInterrupt):
            print(json.dumps(device.facts), flush=True)
            while device.running:
                time.sleep(_POLL_S)
    except (MplabError, OSError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, MplabError) else MplabError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
