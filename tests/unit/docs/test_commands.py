"""The commands of the manual have verbs and options that exist; those that need no lab work as printed."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner

from mplab.base.places import ROOT
from mplab.cli.main import app
from tests.manual import BLOCKS, Block

_WORDS_OF_SYNTAX = re.compile(r"[…\[\]|]")
"""Characters that occur in a synopsis, not in a command."""
_QUICK = (("plan",), ("links",), ("scenarios",), ("transports",), ("init",), ("results", "tables"))
"""Verbs that need neither a lab nor a run."""
_NO_LAB = frozenset({"--dry-run", "--list", "--help"})
_CHECKED_ELSEWHERE = ("mplab ", "#", "source .venv/bin/activate", "make ")
"""Beginnings of lines that need no mark: a test below checks them."""
SHELL = [block for block in BLOCKS if block.language == "sh"]


def lines(block: Block) -> Iterator[str]:
    """Yield the lines of a block, with continued lines and quoted texts in one line, without prompts."""
    quoted = re.sub(r'"\n[^"]*"', '"select 1"', block.text)
    for line in quoted.replace("\\\n", " ").splitlines():
        yield line.strip().removeprefix("$ ").removeprefix(".venv/bin/")


def split(command: str) -> list[str] | None:
    """Return the words after ``mplab``, without a comment; None for a synopsis."""
    command = re.split(r"\s{2,}(?=\S)", command)[0]
    try:
        words = shlex.split(command, comments=True)[1:]
    except ValueError:
        return None
    return None if any(_WORDS_OF_SYNTAX.search(word) for word in words if " " not in word) else words


def _is_quick(words: Sequence[str]) -> bool:
    """Return whether a command needs no lab, no run, and no file that the page does not show."""
    if any(word in {"FILE", "RUN"} for word in words) or tuple(words[:2]) == ("scenarios", "check"):
        return False
    return bool(_NO_LAB & set(words)) or any(tuple(words[: len(verb)]) == verb for verb in _QUICK)


ALL = [
    (block.name, words)
    for block in BLOCKS
    if block.language in {"", "sh", "console"} and block.mark != "run"
    for line in lines(block)
    if line.startswith("mplab ") and (words := split(line))
]
IDS = [f"{name}: {' '.join(words)}"[:90] for name, words in ALL]


PROGRAM: Any = typer.main.get_command(app)
USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""The base class of typer's errors for an unknown verb or option."""


def parse(words: Sequence[str]) -> None:
    """Parse verbs, options and arguments without running anything.

    Raises:
        USAGE_ERROR: the program does not have them.
    """
    command, context = PROGRAM, None
    arguments = ["file.yaml" if word == "FILE" else word for word in words]
    while True:
        context = command.make_context("mplab", arguments, parent=context)
        command = context.command
        if not isinstance(command, TyperGroup):
            return
        arguments = [*context._protected_args, *context.args]
        if not arguments:
            return
        _, command, arguments = command.resolve_command(context, arguments)


@pytest.mark.parametrize("words", [["nosuch"], ["plan", "x", "--nosuch"], ["lab", "shel"], ["report", "--pdf"]])
def test_a_wrong_command_is_found(words: Sequence[str]) -> None:
    with pytest.raises(USAGE_ERROR):
        parse(words)


@pytest.mark.parametrize(("name", "words"), ALL, ids=IDS)
def test_a_command_of_the_manual_has_verbs_and_options_that_exist(name: str, words: list[str]) -> None:
    try:
        parse(words)
    except typer.Exit:  # --help, --version
        return
    except USAGE_ERROR as error:
        pytest.fail(f"{name}: mplab {' '.join(words)}: {error}")


QUICK = list(dict.fromkeys(tuple(words) for _, words in ALL if _is_quick(words)))


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_command_that_needs_no_lab_works_as_printed(words: Sequence[str], desk: Path) -> None:
    if words[0] == "init":
        for name in {"mine.yaml", "night.yaml", "bench.yaml"} & set(words):
            (desk / name).unlink()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.exception


def test_the_tutorial_has_the_cells_that_it_says(desk: Path) -> None:
    assert "\n80 cells, " in CliRunner().invoke(app, ["plan", "mine.yaml"]).stdout
    for words in (["plan", "long-files.yaml", "--set", "size=50 MB"], ["run", "long-files.yaml", "--dry-run"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.exception
    assert not (desk / "runs").exists()


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.name)
def test_every_shell_block_is_checked_or_gives_a_reason(block: Block) -> None:
    others = [line for line in lines(block) if line and not line.startswith(_CHECKED_ELSEWHERE)]
    if others:
        assert block.mark in {"run", "not run"}, others[0]
    assert bool(block.reason) == (block.mark == "not run")


def test_make_has_the_targets_of_the_manual() -> None:
    targets = {line.split()[1] for block in SHELL for line in lines(block) if line.startswith("make ")}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "setup"} <= targets <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


@pytest.mark.parametrize("block", [block for block in SHELL if block.mark == "not run"], ids=lambda block: block.name)
def test_a_block_that_is_not_run_is_a_valid_script(block: Block) -> None:
    checked = subprocess.run(["bash", "-n"], input=block.text, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("block", [block for block in SHELL if block.mark == "run"], ids=lambda block: block.name)
@pytest.mark.usefixtures("desk")
def test_a_block_that_needs_no_lab_runs(block: Block) -> None:
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    script = f"set -eo pipefail\n{block.text}"
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PATH": path}, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
