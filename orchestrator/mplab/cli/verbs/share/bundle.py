"""Make one archive of a run that others can check, analyse again and run again (docs/reproduce.md)."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from mplab.analysis.bundle.archive import SUFFIX
from mplab.analysis.bundle.checksums import digest
from mplab.analysis.bundle.rocrate import Author, Publication
from mplab.analysis.bundle.write import Options, write_bundle
from mplab.analysis.record.run import read_run
from mplab.analysis.text import plural
from mplab.base.errors import InputError
from mplab.base.files import explained
from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import err, out, output_file, print_json
from mplab.run.hostside import host
from mplab.run.run_directory import RUNS


def bundle(
    run_name: RunArgument = "",
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the archive to this file. By default, it is RUN.tar.gz in the current folder.",
            show_default=False,
        ),
    ] = None,
    tables: Annotated[
        bool,
        typer.Option(
            help="Include the cells' tables and scores, which can be computed again. The report is always included."
        ),
    ] = True,
    partial: Annotated[bool, typer.Option("--partial", help="Allow a run that has not ended.")] = False,
    author: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME [<URL>]",
            help="Name an author, with or without an ORCID URL; may be repeated.",
            show_default=False,
        ),
    ] = None,
    licence: Annotated[
        str,
        typer.Option(
            "--license",
            metavar="SPDX|URL",
            help="Publish the data under this licence: an SPDX expression like CC-BY-4.0, or a URL.",
            show_default=False,
        ),
    ] = "",
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize",
            help="Replace addresses and names of networks and devices, and leave out pictures of screens.",
        ),
    ] = False,
    anonymise: Annotated[bool, typer.Option("--anonymise", hidden=True)] = False,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    path = find_run(run_name, runs)
    manifest = read_run(path).manifest
    target = output or Path(f"{manifest.run_id}{SUFFIX}")
    output_file(target)
    locks, locks_of = host.describe_locks(manifest.git.commit or None)
    options = Options(
        tables=tables,
        partial=partial,
        publication=Publication(tuple(map(_author, author or [])), _licence(licence)),
        locks=locks,
        locks_of=locks_of,
        anonymise=anonymize or anonymise,
    )
    with explained(target), err.status("Bundling …"):
        written = write_bundle(path, target, options)
    if as_json:
        print_json({**vars(written), "path": str(written.path), "sha256": _digest(written.path)})
        return
    out.print(f"{written.path}: {written.files} files, {written.size_bytes / 1e6:.1f} MB", markup=False, soft_wrap=True)
    if written.left_out:
        out.print(f"{written.left_out} tables and scores are left out; their checksums are in it")
    if written.omitted:
        out.print(f"{plural(written.omitted, 'file')} left out, because of unknown content: ANONYMISED.md lists them")
    if written.payload:
        err.print(
            "! its captures contain the transferred data and the keys to decrypt it: check who may get it",
            style="yellow",
        )


def _author(text: str) -> Any:  # noqa: ANN401 - analysis.bundle.rocrate.Author, which is slow to import

    try:
        return Author.parse(text)
    except ValueError as error:
        raise InputError(f"--author: {error}") from error


def _licence(text: str) -> str:
    """Return a licence: a URL unchanged, an SPDX expression in canonical form. Raises InputError for anything else."""
    if not text or urlsplit(text).scheme in {"http", "https"}:
        return text
    try:
        return canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        hint = "An SPDX licence expression (CC-BY-4.0, CC0-1.0, ODbL-1.0) or a URL is needed"
        raise InputError(f"--license: {error}. {hint}") from error


def _digest(path: Path) -> str:

    return digest(path)
