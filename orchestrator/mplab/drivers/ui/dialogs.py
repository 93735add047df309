"""Recognize and close dialogs that appear over an app: consent, rating, update, SIM.

The dialogs are defined in ``ui-scenarios/mplab/scenarios/dialogs.yaml``. A dialog that is not defined there is not
closed: the step that it blocks fails, with a screenshot and the element tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.hierarchy import UiNode
from mplab.base.programs import SCENARIOS_DIR
from mplab.drivers.ui.matching import find_node, package_of
from mplab.format.selector import Selector
from mplab.userfiles.experiments.app import Text, Ways, selector_of
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import load_yaml

DIALOGS_FILE = SCENARIOS_DIR / "dialogs.yaml"


class _Dialog(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Text
    seen: Text
    packages: tuple[Text, ...] = ()
    when: Annotated[tuple[Ways, ...], Field(min_length=1)]
    tap: Ways


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    dialogs: dict[str, _Dialog]


@dataclass(frozen=True)
class Dialog:
    """A dialog that can appear over an app, and how to close it.

    Attributes:
        name: name of the dialog in a cell's observations.
        title: description for users.
        seen: phone and date on which the dialog was seen, or a note that it was never seen.
        packages: packages of the apps that can show the dialog; empty: any app.
        when: elements that all exist when the dialog is in front.
        tap: element that closes the dialog when tapped.
    """

    name: str
    title: str
    seen: str
    packages: tuple[str, ...]
    when: tuple[Selector, ...]
    tap: Selector

    def way_out(self, windows: Sequence[UiNode]) -> UiNode | None:
        """Return the element that closes this dialog if the dialog is in front; otherwise None."""
        if self.packages and package_of(windows) not in self.packages:
            return None
        if not all(find_node(windows, selector) for selector in self.when):
            return None
        return find_node(windows, self.tap)


def load_dialogs(path: Path = DIALOGS_FILE) -> tuple[Dialog, ...]:
    """Return the dialogs that a file defines, in the order of the file.

    Raises:
        InputError: the file does not exist or is invalid.
    """
    checker = Checker(load_yaml(path))
    file = checker.model(_File, checker.document.data)
    checker.raise_problems()
    assert file is not None  # noqa: S101 - its problems would have been raised
    return tuple(
        Dialog(
            name=name,
            title=dialog.title,
            seen=dialog.seen,
            packages=dialog.packages,
            when=tuple(map(selector_of, dialog.when)),
            tap=selector_of(dialog.tap),
        )
        for name, dialog in file.dialogs.items()
    )
