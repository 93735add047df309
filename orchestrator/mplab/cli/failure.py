"""Report an error of a command: as lines for people and editors, or as one JSON object for programs.

With ``--json``, the last line on standard error is the object; docs/design.md describes it.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from typer.exceptions import TyperException

from mplab.base.errors import HAS_PLACE
from mplab.cli.output import err

_PLACE = re.compile(r"(?P<file>[^\s:][^\n:]*):(?P<line>\d+): (?:(?P<key>[A-Za-z_][\w.\[\]:-]*): )?(?P<text>.*)")
_FOUND = re.compile(r"(?:\bfound|\bunknown [a-z_ ]+?) (?P<found>'[^']*'|[^\s,.;:']+)")
_MEANT = re.compile(r"Did you mean '(?P<meant>[^']*)'\?")
_ALLOWED = re.compile(r"Allowed: (?P<allowed>[^()\n]+)")


def report(message: str, exit_code: int, *, as_json: bool) -> None:
    """Print an error message to standard error.

    As text, a message that begins with a file and line number gets no prefix, so that editors can parse it.
    """
    if as_json:
        print(json.dumps(described(message, exit_code), ensure_ascii=True), file=sys.stderr)
        return
    if not HAS_PLACE.match(message):
        err.print("mplab:", style="bold red", end=" ")
    err.print(message, markup=False, soft_wrap=True)


def report_usage(error: TyperException, *, as_json: bool) -> None:
    """Print an error in the command line in one line: ``mplab VERB: …``, and how to get help."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if not message:  # a command without arguments has printed its help
        return
    if as_json:
        report(message, error.exit_code, as_json=True)
        return
    command = getattr(getattr(error, "ctx", None), "command_path", "mplab")
    err.print(f"{command}:", style="bold red", end=" ")
    sentence = f"{message[0].lower()}{message[1:]}"
    end = "" if sentence.endswith("?") else "."
    err.print(f"{sentence}{end} Try '{command} --help'", markup=False, soft_wrap=True)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def described(message: str, exit_code: int) -> dict[str, Any]:
    """Return an error as a JSON object: exit code, message, and one entry for each problem in a file.

    Keys of an entry that are not known are left out.
    """
    problems = [_problem(match) for line in message.splitlines() if (match := _PLACE.fullmatch(line))]
    return {"error": {"exit_code": exit_code, "message": message, "problems": problems}}


def _problem(line: re.Match[str]) -> dict[str, Any]:
    text = line["text"]
    problem: dict[str, Any] = {"file": line["file"], "line": int(line["line"])}
    if line["key"]:
        problem["key"] = line["key"]
    problem["text"] = text
    if match := _FOUND.search(text):
        problem["found"] = match["found"].strip("'")
    if match := _MEANT.search(text):
        problem["meant"] = match["meant"]
    if match := _ALLOWED.search(text):
        problem["allowed"] = [name.strip().strip("'") for name in match["allowed"].rstrip(". ").split(", ")]
    return problem
