"""Upload files with an app on Android: choose them in Android's file chooser, and follow progress on the screen."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from mplab.base.errors import StepError
from mplab.scenarios.base.android.scenario import (
    FOLDER,
    OPEN_TIMEOUT_S,
    AndroidScenario,
    Visit,
    choose_file,
    put_file,
    remove_files,
)
from mplab.scenarios.base.android.settle import settle
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import Session
from mplab.scenarios.base.upload import LOG, MARGIN_S, UploadParameters, arrivals


class AndroidUploadScenario(AndroidScenario[UploadParameters]):
    """Upload files of random bytes with an Android app.

    The observation ``upload`` has the same fields as on the virtual phone, and also ``resolution_s``. Its ``blocks`` is
    null: the app does not show which bytes the server has confirmed.
    """

    @contextmanager
    def open(self, context: Context, parameters: UploadParameters) -> Iterator["_Session"]:
        """Prepare the app and copy the files to the phone. At exit delete them, and observe the bytes that arrived."""
        with ExitStack() as ended, self.visit(context) as visit:
            session = _Session(context, parameters, self, visit)
            ended.callback(session.observe_arrivals)
            visit.stack.callback(remove_files, context, session.targets)
            for target in session.targets:
                path = context.scratch_dir / Path(target).name
                path.write_bytes(context.rng.randbytes(parameters.size))
                put_file(context, path)
            yield session


class _Upload(TypedDict):
    """Measured fields of an observation ``upload``."""

    state: Literal["done", "cancelled"]
    began: float
    duration_s: float
    resolution_s: float


@dataclass
class _Session(Session[UploadParameters]):
    scenario: AndroidUploadScenario
    visit: Visit

    @property
    def targets(self) -> list[str]:
        """Return the paths on the phone of the files to upload; the names are unique to the cell."""
        stem = "".join(letter if letter.isalnum() else "-" for letter in self.context.cell_dir.name.partition(".")[0])
        return [f"{FOLDER}/{stem}-{number}.bin" for number in range(1, self.parameters.files + 1)]

    def run(self) -> None:
        """Upload one file after the other. Stop when the time is up, or when the next file would not fit into it.

        Raises:
            StepError: an element or the file chooser is missing, or the app reports a failure.
        """
        context, parameters, visit = self.context, self.parameters, self.visit
        deadline = time.monotonic() + context.time_limit_s - MARGIN_S
        visit.ui.open(visit.app.start, timeout_s=OPEN_TIMEOUT_S)
        for number, target in enumerate(self.targets, 1):
            time.sleep(parameters.think)
            result = self._upload(number, Path(target).name, deadline)
            context.observe(
                "upload", file=number, name=Path(target).name, size_bytes=parameters.size, blocks=None, **result
            )
            left_s = deadline - time.monotonic()
            if result["state"] != "done" or left_s < result["duration_s"] + parameters.think:
                return

    def observe_arrivals(self) -> None:
        """Write an observation ``arrived`` for each file, from the origin's log of uploads; none without the log."""
        log = self.context.cell_dir / LOG
        if log.exists():
            text = log.read_text()
            for number, target in enumerate(self.targets, 1):
                if timeline := arrivals(text, Path(target).name, time.time()):
                    self.context.observe("arrived", file=number, timeline=timeline)

    def _upload(self, number: int, name: str, deadline: float) -> _Upload:
        visit, ui = self.visit, self.visit.ui
        ui.tap(visit.element("create"))
        ui.tap(visit.element("upload files"))
        choose_file(visit, name)
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
            raise StepError(f"{self.scenario.name}: file {number}: the app says: {end.said}")
        if end.outcome == "waiting":
            self._cancel()
        return {
            "state": "done" if end.outcome == "done" else "cancelled",
            "began": round(began, 3),
            "duration_s": round(end.at - began, 3),
            "resolution_s": round(end.resolution_s, 3),
        }

    def _cancel(self) -> None:
        """Cancel the upload by the app's button. Without a button, stop the app, so that it does not send later."""
        with suppress(StepError):
            self.visit.ui.tap(self.visit.element("cancel"), timeout_s=MARGIN_S / 4)
            return
        self.visit.stack.close()
