"""Trace the calls from mplab into its plug-ins, for authors of plug-ins: ``mplab --trace-plugins VERB …``.

The interpreter reports every function call (`sys.setprofile`). A line is written for each call from outside a plug-in
to a function in the plug-in's folder. Nothing is wrapped, so plug-ins behave as without tracing. Calls of private
functions and of functions that Python generates (``__init__`` of a dataclass, comprehensions) are left out.
"""

import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import FrameType

from mplab.base.plugins import REGISTRIES, Plugin

VARIABLE = "MPLAB_TRACE_PLUGINS"
"""Environment variable that enables tracing, also in the processes that mplab starts."""


def start_if_asked() -> None:
    """Start tracing to standard error, in all threads, if the environment variable `VARIABLE` is set."""
    if os.environ.get(VARIABLE):
        start(partial(print, file=sys.stderr, flush=True))


def start(write: Callable[[str], object]) -> None:
    """Start tracing, in this thread and in all threads that start later, until `stop`.

    Args:
        write: called with each line: ``trace: 0.123 s transport mptcp: setup (driver.py:41)``. The time counts from
            the call of `start`.
    """
    trace = _Trace(plugin_files(), write)
    threading.setprofile(trace)
    sys.setprofile(trace)


def stop() -> None:
    """Stop tracing."""
    sys.setprofile(None)
    threading.setprofile(None)


def plugin_files() -> dict[str, str]:
    """Map the folder or file of each plug-in to the plug-in's kind and name: ``transport mptcp``."""
    return {
        _place(plugin): f"{plugin.what} {plugin.name}"
        for registry in REGISTRIES
        for plugin in registry.plugins.values()
    }


def _place(plugin: Plugin) -> str:
    spec = importlib.util.find_spec(plugin.module)
    if spec is None:
        return plugin.module  # matches no file
    if spec.submodule_search_locations:
        return str(Path(next(iter(spec.submodule_search_locations)))) + os.sep
    return spec.origin or plugin.module


class _Trace:
    """Profile function (`sys.setprofile`) that writes a line for each call of a plug-in's public function."""

    def __init__(self, places: Mapping[str, str], write: Callable[[str], object]) -> None:
        self._places = places
        self._write = write
        self._started = time.monotonic()
        self._plugin_of: dict[str, str] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        plugin = self._find(code.co_filename)
        if not plugin or code.co_name.startswith(("_", "<")):
            return
        if frame.f_back is not None and self._find(frame.f_back.f_code.co_filename) == plugin:
            return
        passed_s = time.monotonic() - self._started
        where = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        self._write(f"trace: {passed_s:.3f} s {plugin}: {code.co_name} ({where})")

    def _find(self, file: str) -> str:
        """Return kind and name of the plug-in to which the source file belongs; "": it belongs to none."""
        if file not in self._plugin_of:
            matching = (
                name for location, name in self._places.items() if file == location or file.startswith(location)
            )
            self._plugin_of[file] = next(matching, "")
        return self._plugin_of[file]
