"""Undo changes on a phone from a separate process: ``python -m mplab.drivers.phone.adb.later JSON``.

JSON is a `_Later`. The undo journal holds such command lines. A later process runs them if the process that made the
change was killed together with its adb server.
"""

import json
import sys
from pathlib import Path
from typing import TypedDict

from mplab.base.errors import MplabError
from mplab.drivers.phone.adb.link import Link
from mplab.drivers.phone.adb.root import Root, find_root
from mplab.drivers.phone.adb.server import AdbServer

_CONNECT_TIMEOUT_S = 10.0
_SCRIPT_TIMEOUT_S = 10.0
"""Limit for the script, s. The sum with `_CONNECT_TIMEOUT_S` must be below `mplab.base.undo.COMMAND_TIMEOUT_S`."""


class _Later(TypedDict):
    """Command line argument of the separate process, as JSON: a script, and the phone to run it on.

    Attributes:
        home: home folder of the adb server to start; see `AdbServer.home`.
        keys: paths of additional private keys that the server offers to the phone.
        serial: serial of the phone.
        root: name of the `Root` method by which the script gets root access.
        script: lines of the phone's shell.
    """

    home: str
    keys: list[str]
    serial: str
    root: str
    script: str


def later_command(link: Link, root: str, script: str) -> list[str]:
    """Return the command line with which a new process, with its own adb server, runs `script` on the phone.

    `root` is the name of the `Root` method by which the script gets root access.
    """
    task: _Later = {
        "home": str(link.server.home),
        "keys": [str(key) for key in link.server.keys],
        "serial": link.serial,
        "root": root,
        "script": script,
    }
    return [sys.executable, "-m", "mplab.drivers.phone.adb.later", json.dumps(task)]


def run_later(task: _Later) -> None:
    """Start an adb server, connect the phone of `task`, and run the script of `task` on it.

    Raises:
        LabNotReadyError: the phone cannot be connected.
        DeviceError: the phone was lost.
        SystemExit: the script failed.
    """
    log = Path(task["home"]) / "later.log"
    with AdbServer(Path(task["home"]), keys=tuple(map(Path, task["keys"])), log=log) as server:
        link = Link(server, task["serial"])
        link.connect(_CONNECT_TIMEOUT_S)
        dialect = Root[task["root"]]
        if dialect is Root.ADBD:  # a reboot ends "adb root"
            dialect = find_root(link)
        result = link.run(dialect.line(task["script"]), timeout_s=_SCRIPT_TIMEOUT_S)
        if result.exit_code != 0:
            raise SystemExit(f"{link.label}: exit code {result.exit_code}: {result.stderr.decode(errors='replace')}")


if __name__ == "__main__":
    try:
        run_later(json.loads(sys.argv[1]))
    except MplabError as problem:
        raise SystemExit(str(problem)) from problem
