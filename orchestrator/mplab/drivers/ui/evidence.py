"""Save screenshots of a cell's apps when an error occurs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mplab.base.errors import CellError
from mplab.drivers.ui.protocol import Ui


class OpenApps:
    """Open apps of a cell. Their screens are saved when a step of the cell fails."""

    def __init__(self) -> None:
        self._open: list[tuple[Path, Ui]] = []
        self._kept: CellError | None = None
        """Last error for which screens were saved. It passes several contexts, and only the first one must save."""

    @contextmanager
    def watched(self, ui: Ui, screenshots: Path) -> Iterator[None]:
        """Save the app's screen if a step of the cell fails during the context.

        Args:
            ui: user interface of the open app.
            screenshots: folder for the files ``end.png`` and ``end.html`` (Android: ``end.xml``).
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
        """Save the screens of all open apps if the context ends with a CellError; save them once per error."""
        try:
            yield
        except CellError as error:
            if error is not self._kept:
                self._kept = error
                for path, ui in self._open:
                    ui.keep_evidence(path)
            raise


def keep_step(ui: Ui, screenshots: Path | None, number: int) -> str:
    """Save the screen after a failed step as ``step-NN.png``, and the element tree next to it.

    Args:
        ui: user interface of the app.
        screenshots: folder for the files; None: save nothing.
        number: number of the step.

    Returns:
        A remark for the step's error message that names the file; "" if nothing was saved.
    """
    if screenshots is None:
        return ""
    path = screenshots / f"step-{number:02}.png"
    return f" (see {path.parent.name}/{path.name})" if ui.keep_evidence(path) else ""


def keep_screen(ui: Ui, path: Path) -> None:
    """Save the screen as PNG file `path`, and the element tree next to it as ``.html``: evidence of an app's message.

    Raises:
        StepError: the app does not answer.
    """
    ui.screenshot(path)
    path.with_suffix(".html").write_text(ui.hierarchy())
