"""Writes the table of requested and measured values for `linkem`, with the stand-in router's conditions and probe.

``python -m tests.router.linkem_table FILE``: phones, each with an emulated link to one server, in private namespaces.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mplab.base.enter import in_lab, lab_process
from mplab.base.nodes import Node, start_node
from mplab.base.polling import wait_ready
from mplab.base.programs import LINKEM
from tests.router.bench import Bench
from tests.router.conditions import Case
from tests.router.inside import SERVER
from tests.router.measure import Slot, probe_server

_PHONES = 8
_FOLDER = Path("/run/linkem")
"""Folder of the emulator, in the tmpfs of the lab."""
_CONTROL = _FOLDER / "control"
_OFFLOADS = ("tso", "off", "gso", "off", "gro", "off")


def _phone(number: int, air: Node, server: Node) -> Slot:
    """Make a phone whose interface is one end of an emulated link; the server has the other end."""
    phone = start_node(f"phone{number}")
    lab = Node("lab", os.getpid())
    lab.ip(
        f"link add wlan0 netns {phone.pid} type veth peer name p{number} netns {air.pid}",
        f"link add eth{number} netns {server.pid} type veth peer name s{number} netns {air.pid}",
    )
    phone.ip(f"addr add 10.70.{number}.2/24 dev wlan0", "link set wlan0 up", f"route add default via 10.70.{number}.1")
    server.ip(f"addr add 10.70.{number}.1/24 dev eth{number}", f"link set eth{number} up")
    air.ip(f"link set p{number} up", f"link set s{number} up")
    ends = ((phone, "wlan0"), (server, f"eth{number}"), (air, f"p{number}"), (air, f"s{number}"))
    for node, interface in ends:
        node.run(["ethtool", "-K", interface, *_OFFLOADS])
    return Slot(phone, "wlan0")


def _ask(request: Mapping[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(_CONTROL))
        client.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(client.makefile().readline())
    assert answer["ok"], answer


def _inside(file: Path) -> None:
    air, server = start_node("air"), start_node("server")
    server.ip(f"addr add {SERVER}/32 dev lo")
    slots = [_phone(number, air, server) for number in range(1, _PHONES + 1)]
    names = {slot: f"link{number}" for number, slot in enumerate(slots, 1)}
    links = [
        {"name": name, "a": f"p{number}", "b": f"s{number}", "up": {}, "down": {}}
        for number, name in enumerate(names.values(), 1)
    ]
    _FOLDER.mkdir()
    config, log = _FOLDER / "linkem.json", _FOLDER / "linkem.log"
    config.write_text(json.dumps({"seed": 1, "links": links}))
    emulator = air.spawn([str(LINKEM.path()), "run", "--config", str(config), "--control", str(_CONTROL)], log=log)
    wait_ready(emulator, log, name="linkem")

    def apply(cases: Mapping[Slot, Case]) -> None:
        for slot, case in cases.items():
            directions = {"up": case.path.up.to_linkem(), "down": case.path.down.to_linkem()}
            how = {"continue": True} if case.changed else {"seed": 1}
            _ask({"op": "apply", "link": names[slot], **directions, **how})

    with probe_server(server, SERVER):
        bench = Bench(slots, SERVER, apply, serialises=True)
        file.write_text(bench.table(), encoding="utf-8")
    off = {case.name: outcome.problems for case, outcome in bench.outcomes.items() if outcome.problems}
    for name, problems in off.items():
        print(f"{name}: {'; '.join(problems)}")
    sys.exit(1 if off else 0)


def main() -> int:
    """Measure and write the table; return 1 if a path does not meet the request."""
    file = Path(sys.argv[1]).resolve()
    if in_lab():
        _inside(file)
    started = time.monotonic()
    with lab_process([sys.executable, "-m", "tests.router.linkem_table", str(file)]) as lab:
        code = lab.wait()
    print(f"{file}: in {time.monotonic() - started:.0f} s")
    return 1 if code is None else code


if __name__ == "__main__":
    sys.exit(main())
