"""The manual as tests read it: its pages, and the code blocks in them."""

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from mplab.base.places import ROOT

_BLOCK = re.compile(
    r"(?:^ *<!-- (?P<mark>[\w ]+?)(?:: (?P<reason>.+?))? -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


def _site() -> Any:
    spec = importlib.util.spec_from_file_location("mplab_site", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = _site()
"""The module docs/site.py."""
PAGES: list[Path] = SITE.pages()


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: str
    line: int
    language: str
    text: str
    mark: str
    """``run``, ``not run``, or empty: the comment before the block, ``<!-- not run: needs a phone -->``."""
    reason: str

    @property
    def name(self) -> str:
        """Page and line, for messages."""
        return f"{self.page}:{self.line}"


def _blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in _BLOCK.finditer(text):
            indent = found["indent"]
            lines = [line.removeprefix(indent) for line in found["text"].splitlines(keepends=True)]
            line = text[: found.start("language")].count("\n") + 1
            name = page.relative_to(ROOT).as_posix()
            yield Block(
                name, line, found["language"], "".join(lines), found["mark"] or "", (found["reason"] or "").strip()
            )


BLOCKS = list(_blocks())
