"""Uploads by an app: the file is chosen in Android's chooser, and what becomes of it is seen on the screen."""

import contextlib
import time
from pathlib import Path
from typing import Any

from mplab.base.errors import StepError
from mplab.scenarios.base.android.files import FOLDER, choose, put, remove
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S, AndroidScenario, Visit
from mplab.scenarios.base.android.settle import settle
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.upload import LOG, MARGIN_S, UploadParameters, arrivals


class AndroidUploadScenario(AndroidScenario):
    """`Scenario`: uploads of fresh files.

    An observation ``upload`` is as that of the virtual phone, but for ``blocks``, which is null: the app does not tell
    what the server has confirmed; and with ``resolution_s``.
    """

    def prepare(self, context: Context, parameters: UploadParameters) -> None:
        """Bring the files to the phone."""
        targets = self._targets(context, parameters)
        self.open(context).stack.callback(remove, context, targets)
        for target in targets:
            path = context.scratch_dir / Path(target).name
            path.write_bytes(context.rng.randbytes(parameters.size))
            put(context, path)

    def run(self, context: Context, parameters: UploadParameters) -> None:
        """Upload, until all files are there, the next would not fit into the time, or the time is up.

        Raises:
            StepError: the app does not do its part.
        """
        visit = self.visit(context)
        deadline = time.monotonic() + context.time_limit_s - MARGIN_S
        visit.ui.open(visit.app.start, timeout_s=OPEN_TIMEOUT_S)
        for number, target in enumerate(self._targets(context, parameters), 1):
            time.sleep(parameters.think)
            found = self._upload(visit, number, Path(target).name, deadline)
            context.observe(
                "upload", file=number, name=Path(target).name, size_bytes=parameters.size, blocks=None, **found
            )
            left_s = deadline - time.monotonic()
            if found["state"] != "done" or left_s < found["duration_s"] + parameters.think:
                return

    def clean_up(self, context: Context, parameters: UploadParameters) -> None:
        """End the app, remove the files; observe what the origin's log, where there is one, says has arrived."""
        super().clean_up(context, parameters)
        log = context.cell_dir / LOG
        if log.exists():
            text = log.read_text()
            for number, target in enumerate(self._targets(context, parameters), 1):
                if timeline := arrivals(text, Path(target).name, time.time()):
                    context.observe("arrived", file=number, timeline=timeline)

    def _targets(self, context: Context, parameters: UploadParameters) -> list[str]:
        """Paths on the phone: those of this cell."""
        stem = "".join(letter if letter.isalnum() else "-" for letter in context.cell_dir.name.partition(".")[0])
        return [f"{FOLDER}/{stem}-{number}.bin" for number in range(1, parameters.files + 1)]

    def _upload(self, visit: Visit, number: int, name: str, deadline: float) -> dict[str, Any]:
        ui = visit.ui
        ui.tap(visit.element("create"))
        ui.tap(visit.element("upload files"))
        choose(visit, name)
        began = time.time()
        end = settle(
            ui,
            since=began,
            for_s=deadline - time.monotonic(),
            busy=visit.element("uploading"),
            done=visit.element("uploaded"),
            failed=visit.element("failed"),
            watch=visit.watch,
        )
        if end.outcome == "failed":
            raise StepError(f"{self.name}: file {number}: the app says: {end.said}")
        if end.outcome == "waiting":
            self._cancel(visit)
        return {
            "state": "done" if end.outcome == "done" else "cancelled",
            "began": round(began, 3),
            "duration_s": round(end.at - began, 3),
            "resolution_s": round(end.resolution_s, 3),
        }

    def _cancel(self, visit: Visit) -> None:
        """By the app's own button; where there is none, the app is ended: nothing goes on behind the captures."""
        with contextlib.suppress(StepError):
            visit.ui.tap(visit.element("cancel"), timeout_s=MARGIN_S / 4)
            return
        visit.stack.close()
