"""The manual works as printed: its commands parse, those without a lab run, and its links have targets."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner

from mplab.cli.main import app

ROOT = Path(__file__).parents[2]
FOLDERS = ("", "docs", "experiments", "ui-scenarios", "proxy-docker", "phone-emulator")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_WORDS_OF_SYNTAX = re.compile(r"[…\[\]|]")
"""Characters that occur in a synopsis, not in a command."""
_QUICK = (("plan",), ("links",), ("scenarios",), ("transports",), ("init",), ("results", "tables"))
"""Verbs that need neither a lab nor a run."""
_NO_LAB = frozenset({"--dry-run", "--list", "--help"})


def commands(page: Path) -> Iterator[str]:
    """Yield the ``mplab`` command lines in the shell blocks of a page."""
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if language not in {"", "sh", "console"}:
            continue
        quoted = re.sub(r'"\n[^"]*"', '"select 1"', text)
        for line in quoted.replace("\\\n", " ").splitlines():
            words = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if words.startswith("mplab "):
                yield words


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


ALL = [(page.relative_to(ROOT), words) for page in PAGES for line in commands(page) if (words := split(line))]
IDS = [f"{page}: {' '.join(words)}"[:90] for page, words in ALL]


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


@pytest.mark.parametrize(("page", "words"), ALL, ids=IDS)
def test_a_command_of_the_manual_has_verbs_and_options_that_exist(page: Path, words: list[str]) -> None:
    try:
        parse(words)
    except typer.Exit:  # --help, --version
        return
    except USAGE_ERROR as error:
        pytest.fail(f"{page}: mplab {' '.join(words)}: {error}")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the checkout, with the files that a reader of the tutorial writes."""
    for name in ("experiments", "router-configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("mine", "long-files", "night"):
        text = next(text for text in TUTORIAL if text.startswith(f"# {name}.yaml") or f"name: {FIRST[name]}" in text)
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    secret = tmp_path / "home" / ".config" / "mplab" / "webhook-url"
    secret.parent.mkdir(parents=True)
    secret.write_text("https://chat.example.org/hooks/KEY\n", encoding="utf-8")
    secret.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


TUTORIAL = [text for language, text in _BLOCK.findall((ROOT / "docs/tutorial.md").read_text()) if language == "yaml"]
FIRST = {"mine": "short-files", "long-files": "long-files", "night": "night"}
QUICK = list(dict.fromkeys(tuple(words) for _, words in ALL if _is_quick(words)))


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_command_that_needs_no_lab_works_as_printed(words: Sequence[str], desk: Path) -> None:
    if words[0] == "init":
        (desk / "mine.yaml").unlink()
        (desk / "night.yaml").unlink()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.exception


def test_the_tutorial_has_the_cells_that_it_says(desk: Path) -> None:
    assert "\n80 cells, " in CliRunner().invoke(app, ["plan", "mine.yaml"]).stdout
    for words in (["plan", "long-files.yaml", "--set", "size=50 MB"], ["run", "long-files.yaml", "--dry-run"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.exception
    assert not (desk / "runs").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    counts: dict[str, int] = {}
    slugs = set()
    for title in re.findall(r"^#+ (.+)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        count = counts.get(slug, 0)
        slugs.add(f"{slug}-{count}" if count else slug)
        counts[slug] = count + 1
    return slugs


WHOLE = [
    (page.relative_to(ROOT), text)
    for page in PAGES
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8"))
    if language == "yaml" and re.search(r"^mplab: 1$", text, re.MULTILINE) and "\nscenarios:" in text
]


@pytest.mark.parametrize(("page", "text"), WHOLE, ids=[f"{page}-{n}" for n, (page, _) in enumerate(WHOLE)])
def test_an_experiment_file_of_the_manual_is_accepted(page: Path, text: str, desk: Path) -> None:
    (desk / "nightly.yaml").write_text((ROOT / "experiments" / "demo.yaml").read_text(), encoding="utf-8")
    (desk / "x.yaml").write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, ["plan", "x.yaml"])
    assert result.exit_code == 0, f"{page}: {result.exception}"
