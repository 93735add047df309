"""Run apps as processes, so that ``ps`` lists them, ``kill`` ends them, and their traffic has their uid."""

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass

import psutil

from mplab.device.android.state import Package, State
from mplab.device.system import System


@dataclass
class AppProcess:
    """The process of a running app."""

    process: asyncio.subprocess.Process
    outer_pid: int
    """Process id on this machine."""
    pid: int
    """Process id inside the device."""
    watch: asyncio.Task[None]


class Processes:
    """The processes of the running apps of one phone."""

    def __init__(self, state: State, system: System) -> None:
        self._state = state
        self._system = system
        self._running: dict[str, AppProcess] = {}

    def pid_of(self, package: str) -> int | None:
        """Return the id of an app's process inside the device; None if the app does not run."""
        app = self._running.get(package)
        return app.pid if app else None

    async def start(self, package: Package) -> int:
        """Start the process of an app unless it runs. Return the process id inside the device."""
        name = package.info.name
        if app := self._running.get(name):
            return app.pid
        process = await self._system.spawn(
            ["/system/bin/sh", "-c", f"echo $$; exec -a {name} /system/bin/applet"],
            uid=package.uid,
            env={"APPLET_APP": "1"},
        )
        assert process.stdout is not None  # noqa: S101 - it has pipes
        pid = int(await process.stdout.readline() or b"0")
        children = psutil.Process(process.pid).children()
        outer = children[0].pid if children else process.pid
        watch = asyncio.create_task(self._watch(name, process))
        self._running[name] = AppProcess(process, outer, pid, watch)
        self._state.log.add("ActivityManager", f"Start proc {pid}:{name}/u0a{package.uid - 10000} for top-activity")
        return pid

    async def stop(self, name: str) -> None:
        """Kill the process of an app; do nothing if the app does not run."""
        if app := self._running.pop(name, None):
            app.watch.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.kill(app.outer_pid, signal.SIGKILL)
            await app.process.wait()
            self._state.log.add("ActivityManager", f"Force stopping {name} appid={app.pid} user=0: from pid 1337")

    def forget(self) -> None:
        """Forget all processes. Call this when the phone reboots, which ends them."""
        for app in self._running.values():
            app.watch.cancel()
        self._running.clear()

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        self._running.pop(name, None)
        self._state.screen.stop(name)
        self._state.log.add("ActivityManager", f"Process {name} has died: fg TOP")
