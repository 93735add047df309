"""Undo on a phone by a process of its own: ``python -m mplab.drivers.phone.adb.later JSON``.

What a journal keeps are command lines: they are run when the process that made the change is dead, and its adb
server with it.
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
"""Together below `mplab.base.undo.COMMAND_TIMEOUT_S`."""


class _Later(TypedDict):
    """The argument of the process: JSON of these."""

    home: str
    keys: list[str]
    serial: str
    root: str
    script: str


def later_command(link: Link, root: str, script: str) -> list[str]:
    """The command line that runs `script` on the phone by a server of its own."""
    what: _Later = {
        "home": str(link.server.home),
        "keys": [str(key) for key in link.server.keys],
        "serial": link.serial,
        "root": root,
        "script": script,
    }
    return [sys.executable, "-m", "mplab.drivers.phone.adb.later", json.dumps(what)]


def run_later(what: _Later) -> None:
    """Run it. Raises LabNotReadyError, DeviceError."""
    log = Path(what["home"]) / "later.log"
    with AdbServer(Path(what["home"]), keys=tuple(map(Path, what["keys"])), log=log) as server:
        link = Link(server, what["serial"])
        link.connect(_CONNECT_TIMEOUT_S)
        dialect = Root[what["root"]]
        if dialect is Root.ADBD:  # a reboot has taken it back
            dialect = find_root(link)
        done = link.run(dialect.line(what["script"]), timeout_s=_SCRIPT_TIMEOUT_S)
        if done.exit_code != 0:
            raise SystemExit(f"{link.label}: exit code {done.exit_code}: {done.stderr.decode(errors='replace')}")


if __name__ == "__main__":
    try:
        run_later(json.loads(sys.argv[1]))
    except MplabError as problem:
        raise SystemExit(str(problem)) from problem
