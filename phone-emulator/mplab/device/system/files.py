"""Access the device's files from this process, with a thread in the device's mount namespace."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mplab.base.kernel import become, enter_files

Result = TypeVar("Result")


class FileThread:
    """A thread that runs functions in the device's mount namespace, with the rights of one user of the device.

    Args:
        pid: id of a process of the device, in this process's PID namespace.
        uid: id of the user. If this process cannot change its user, its own rights apply.
    """

    def __init__(self, pid: int, uid: int) -> None:
        self._pid = pid
        self._uid = uid
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="files", initializer=self._enter)

    async def run(self, action: Callable[[], Result]) -> Result:
        """Call `action` in the thread and return its result.

        `action` must import nothing: the thread does not see the files of Python.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, action)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _enter(self) -> None:
        enter_files(self._pid)
        if self._uid:
            with contextlib.suppress(OSError):
                become(self._uid, self._uid)
