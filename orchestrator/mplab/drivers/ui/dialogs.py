"""Dialogs that come up over an app: consent, rate me, update, SIM. What they look like, and how they are closed.

They are data: ``ui-scenarios/mplab/scenarios/dialogs.yaml``. One that nobody knows is left alone: the
step that it stands in the way of fails, and its picture and elements are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.programs import SCENARIOS_DIR
from mplab.drivers.ui.hierarchy import Node
from mplab.drivers.ui.matching import find_node, package_of
from mplab.format.selector import Selector
from mplab.userfiles.app import Text, Ways, selector_of
from mplab.userfiles.check import Checker
from mplab.userfiles.yaml import load_yaml

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
    """One dialog.

    Attributes:
        name: what observations call it.
        title: for people.
        seen: on which phone and when, or that it was not.
        packages: whose it can be; empty: anybody's.
        when: elements that are all there.
        tap: what closes it.
    """

    name: str
    title: str
    seen: str
    packages: tuple[str, ...]
    when: tuple[Selector, ...]
    tap: Selector

    def way_out(self, windows: Sequence[Node]) -> Node | None:
        """What to tap, when this dialog is in front; else None."""
        if self.packages and package_of(windows) not in self.packages:
            return None
        if not all(find_node(windows, one) for one in self.when):
            return None
        return find_node(windows, self.tap)


def load_dialogs(path: Path = DIALOGS_FILE) -> tuple[Dialog, ...]:
    """The dialogs of a file, in its order.

    Raises:
        InputError: there is no such file, or it is wrong.
    """
    checker = Checker(load_yaml(path))
    found = checker.model(_File, checker.document.data)
    checker.raise_problems()
    assert found is not None  # noqa: S101 - its problems would have been raised
    return tuple(
        Dialog(
            name=name,
            title=dialog.title,
            seen=dialog.seen,
            packages=dialog.packages,
            when=tuple(map(selector_of, dialog.when)),
            tap=selector_of(dialog.tap),
        )
        for name, dialog in found.dialogs.items()
    )
