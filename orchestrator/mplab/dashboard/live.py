"""Send changes of the folders to browsers as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator

from mplab.dashboard.watch import Snapshot, Watcher

MOST_CLIENTS = 32
"""Number of browsers that are served at the same time; further ones get the status 503."""
_LOOK_S = 1.0
"""Interval at which the folders are read while a browser is connected."""
_STILL_THERE_S = 15.0
"""Interval of comments that keep a silent connection open and detect a closed one."""


class Live:
    """Reads the folders while at least one browser is connected.

    Args:
        watcher: reads the folders.
    """

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._clients = 0
        self._changed = asyncio.Event()
        self._snapshot: Snapshot | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def full(self) -> bool:
        """Return whether no further browser can be served."""
        return self._clients >= MOST_CLIENTS or self._closed

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._wake()

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield events for one browser until it disconnects: the current state, then each change."""
        self._clients += 1
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        try:
            yield b"retry: 3000\n\n"
            sent = -1
            while not self._closed and self._task is not None:
                changed = self._changed
                if self._snapshot is not None and self._snapshot.version != sent:
                    sent = self._snapshot.version
                    yield f"id: {sent}\nevent: state\ndata: {json.dumps(progress_of(self._snapshot))}\n\n".encode()
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), _STILL_THERE_S)
                except TimeoutError:
                    yield b": no change\n\n"
        finally:
            self._clients -= 1

    async def _look(self) -> None:
        try:
            while self._clients and not self._closed:
                snapshot = await asyncio.to_thread(self._watcher.snapshot)
                if self._snapshot is None or snapshot.version != self._snapshot.version:
                    self._snapshot = snapshot
                    self._wake()
                await asyncio.sleep(_LOOK_S)
        finally:  # after an error, the streams end: browsers show that the connection is lost, and try again
            self._task = None
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def progress_of(snapshot: Snapshot) -> dict[str, object]:
    """Return the version of a snapshot and the progress of its running runs, as JSON data."""
    return {
        "version": snapshot.version,
        "running": [
            {
                "run": run.name,
                "state": run.state,
                "done": run.progress.done,
                "total": run.progress.total,
                "cell": run.progress.current_cell,
                "step": run.progress.current_step,
                "left_s": round(run.progress.eta_s, 1),
            }
            for run in snapshot.runs
            if run.at_work
        ],
    }
