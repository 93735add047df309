"""Run the virtual machine of a virtual router: user-mode Linux, an ordinary program."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from mplab.base.errors import DeviceError, last_words
from mplab.base.nodes import Node, NodeProcess
from mplab.base.programs import UML, UML_XSTATE
from mplab.drivers.shaper.virtual.image import Port

MEMORY = "96M"
_FIRST = ("nice", "-n", "-15")
"""Command prefix that raises the priority, if permitted, so that other programs of the host do not delay the router."""
_SHORTEST_LIFE_S = 1.0
_MOST_SHORT_LIVES = 3
_STOP_S = 2.0


class VirtualMachine:
    """Virtual machine that is booted again whenever its process ends: user-mode Linux ends on a reboot.

    Args:
        name: name in messages: ``router wifi``.
        node: node to whose interfaces the ports of the machine are connected.
        root: root file system.
        ports: interfaces of the machine, ``vec0`` first.
        log: file for the console output.
    """

    def __init__(self, name: str, node: Node, *, root: Path, ports: Sequence[Port], log: Path) -> None:
        self._name = name
        self._node = node
        self._argv = _argv(root, ports)
        self._log = log
        self._process: NodeProcess | None = None
        self._stopping = threading.Event()
        self._restarter = threading.Thread(target=self._restart, name=f"{name} power", daemon=True)
        self._given_up = False

    def start(self) -> None:
        """Boot the machine."""
        self._process = self._boot()
        self._restarter.start()

    def _boot(self) -> NodeProcess:
        # Its memory is a file in this folder, in the lab's own tmpfs.
        env = {"TMPDIR": "/dev/shm"}  # noqa: S108
        if UML_XSTATE.exists():
            env["LD_PRELOAD"] = str(UML_XSTATE)
        return self._node.spawn(self._argv, log=self._log, env=env)

    def _restart(self) -> None:
        short_lives = 0
        while self._process is not None:
            booted = time.monotonic()
            while self._process.wait(1.0) is None:
                pass
            short_lives = short_lives + 1 if time.monotonic() - booted < _SHORTEST_LIFE_S else 0
            if short_lives == _MOST_SHORT_LIVES:
                self._given_up = True
            if self._given_up or self._stopping.is_set():
                return
            self._process = self._boot()

    def check_alive(self) -> None:
        """Raise DeviceError when the machine has ended three times in a row within 1 s after booting."""
        if self._given_up:
            raise DeviceError(self._name, "the virtual machine ends as soon as it boots", stderr=last_words(self._log))

    def stop(self) -> None:
        """Stop the machine."""
        self._stopping.set()
        if self._process is not None:
            self._process.stop(_STOP_S)
            self._restarter.join()


def _argv(root: Path, ports: Sequence[Port]) -> list[str]:
    plugs = [f"vec{number}:{port.plug},depth=128,mac={port.mac}" for number, port in enumerate(ports)]
    return [
        *_FIRST,
        *(str(UML.path()), f"mem={MEMORY}", "umid=router", "uml_dir=/run/uml/", "root=/dev/root", "quiet", "noreboot"),
        *("rootfstype=hostfs", f"rootflags={root}", "rw", "init=/sbin/init", *plugs),
        *("con0=null,fd:1", "con=null", "ssl=null"),
    ]
