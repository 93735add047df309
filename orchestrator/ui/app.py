"""What differs between the phones' versions of one app: how it is started and what its elements are called.

A scenario's folder has it in ``app.yaml``, a section for each kind of phone::

    virtual:
      start: "{url}/?account={account}"
      elements:
        post: {css: "#post"}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from orchestrator.errors import LabNotReadyError
from orchestrator.spec.yaml import load_yaml
from orchestrator.ui.protocol import Selector, Ui

FILE = "app.yaml"

_Text = Annotated[str, Field(min_length=1)]
_Element = Annotated[dict[Literal["css", "xpath", "id", "text"], _Text], Field(min_length=1, max_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")

    start: _Text
    elements: dict[str, _Element]


_SECTIONS = TypeAdapter(dict[str, _Section])


@dataclass(frozen=True)
class App:
    """One version of an app.

    Attributes:
        start: what `Ui.open` is given, with ``{…}`` for what only the cell knows.
        elements: what the scenario calls an element → how it is found.
    """

    start: str
    elements: Mapping[str, Selector]


def load_app(folder: Path, kind: str = "virtual") -> App:
    """The version for one kind of phone of the app in a scenario's folder.

    Raises:
        InputError: there is no ``app.yaml``, or it is not YAML.
        LabNotReadyError: it is wrong, or has no such section.
    """
    path = folder / FILE
    try:
        sections = _SECTIONS.validate_python(load_yaml(path).data)
    except ValidationError as error:
        raise LabNotReadyError(f"{path}: {error}") from error
    if kind not in sections:
        raise LabNotReadyError(f"{path}: there is no section {kind}; there is: {', '.join(sections) or 'none'}")
    section = sections[kind]
    elements = {
        name: Selector(by, value) for name, element in section.elements.items() for by, value in element.items()
    }
    return App(section.start, elements)


def keep_screen(ui: Ui, path: Path) -> None:
    """Save the screen as `path` (PNG) and its elements beside it: evidence of what an app has said.

    Raises:
        StepError: the app does not answer.
    """
    ui.screenshot(path)
    path.with_suffix(".html").write_text(ui.hierarchy())
