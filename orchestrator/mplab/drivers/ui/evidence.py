"""Save screenshots of a cell's apps when an error occurs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mplab.base.errors import CellError
from mplab.drivers.ui.protocol import Ui


class OpenApps:
    """Apps of a cell that are open; their screens are saved when a step of the cell fails."""

    def __init__(self) -> None:
        self._open: list[tuple[Path, Ui]] = []
        self._kept: CellError | None = None
        """Last error for which screens were saved. It passes several contexts, and only the first one must save."""

    @contextmanager
    def watched(self, ui: Ui, screenshots: Path) -> Iterator[None]:
        """Add an open app for the duration of the context.

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
        """Save the screens of all open apps when the context ends with a CellError, once per error."""
        try:
            yield
        except CellError as error:
            if error is not self._kept:
                self._kept = error
                for path, ui in self._open:
                    ui.keep_evidence(path)
            raise


def keep_step(ui: Ui, screenshots: Path | None, number: int) -> str:
    """Save screen and element tree after a failed step as ``step-NN.png``; return a remark for the step's message.

    Args:
        ui: the app.
        screenshots: folder for the files; None: save nothing.
        number: number of the step.
    """
    if screenshots is None:
        return ""
    path = screenshots / f"step-{number:02}.png"
    return f" (see {path.parent.name}/{path.name})" if ui.keep_evidence(path) else ""


def keep_screen(ui: Ui, path: Path) -> None:
    """Save the screen as `path` (PNG) and its element tree next to it as ``.html``: evidence of a message in the app.

    Raises:
        StepError: the app does not answer.
    """
    ui.screenshot(path)
    path.with_suffix(".html").write_text(ui.hierarchy())
