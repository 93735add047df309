"""How the apps of a cell looked when something went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mplab.base.errors import CellError
from mplab.drivers.ui.protocol import Ui


class OpenApps:
    """The apps that are open in a cell."""

    def __init__(self) -> None:
        self._open: list[tuple[Path, Ui]] = []
        self._kept: CellError | None = None
        """The error that the apps were looked at for: on its way out of them it is met again."""

    @contextmanager
    def watched(self, ui: Ui, screenshots: Path) -> Iterator[None]:
        """Watch an app for as long as the context, in which it is open.

        Args:
            ui: the app.
            screenshots: gets ``end.png`` and ``end.html`` (Android: ``end.xml``) of an app that was open when a step of
                the cell failed.
        """
        known = screenshots / "end.png", ui
        self._open.append(known)
        try:
            with self.kept_on_failure():  # what is closed by the error itself
                yield
        finally:
            self._open.remove(known)

    @contextmanager
    def kept_on_failure(self) -> Iterator[None]:
        """Keep how the apps look when the context ends with an error of the cell."""
        try:
            yield
        except CellError as error:
            if error is not self._kept:
                self._kept = error
                for path, ui in self._open:
                    ui.keep_evidence(path)
            raise


def keep_screen(ui: Ui, path: Path) -> None:
    """Save the screen as `path` (PNG) and its elements beside it: evidence of what an app has said.

    Raises:
        StepError: the app does not answer.
    """
    ui.screenshot(path)
    path.with_suffix(".html").write_text(ui.hierarchy())
