"""Save screenshots of a cell's apps when an error occurs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mplab.base.errors import CellError
from mplab.drivers.ui.protocol import Ui


class OpenApps:
    """Open apps of a cell."""

    def __init__(self) -> None:
        self._open: list[tuple[Path, Ui]] = []
        self._kept: CellError | None = None
        """Last error with saved screenshots: it passes several contexts on its way out."""

    @contextmanager
    def watched(self, ui: Ui, screenshots: Path) -> Iterator[None]:
        """Watch an open app for the duration of the context.

        Args:
            ui: the app.
            screenshots: folder for ``end.png`` and ``end.html`` (Android: ``end.xml``) if a step of the cell fails
                while the app is open.
        """
        known = screenshots / "end.png", ui
        self._open.append(known)
        try:
            with self.kept_on_failure():  # save the apps that this error is about to close
                yield
        finally:
            self._open.remove(known)

    @contextmanager
    def kept_on_failure(self) -> Iterator[None]:
        """Save screenshots of all open apps when the context ends with an error of the cell."""
        try:
            yield
        except CellError as error:
            if error is not self._kept:
                self._kept = error
                for path, ui in self._open:
                    ui.keep_evidence(path)
            raise


def keep_screen(ui: Ui, path: Path) -> None:
    """Save the screen as `path` (PNG) and its elements next to it, as evidence of a message in the app.

    Raises:
        StepError: the app does not answer.
    """
    ui.screenshot(path)
    path.with_suffix(".html").write_text(ui.hierarchy())
