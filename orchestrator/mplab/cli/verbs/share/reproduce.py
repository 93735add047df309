"""Check a bundle, make its report again from raw data, then run its experiment again and compare the results.

Exit codes: 0 the report has the same bytes and no result differs · 1 the report differs, or cells of the new run
are not ok · 2 the bundle is damaged or none, or its experiment cannot be run here · 3 lab not ready · 4 results
differ.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.bundle.agreement import OF_CHANGE, ContrastPair, printed_pairs
from mplab.analysis.bundle.archive import SUFFIX
from mplab.analysis.bundle.read import Bundle, DamagedBundleError
from mplab.analysis.bundle.rebuild import Rebuilt
from mplab.analysis.text import plural
from mplab.analysis.verdicts.gate import change_text, name_of
from mplab.base.errors import InputError
from mplab.cli.options import (
    AllowHooksOption,
    AllowLabOption,
    JsonOption,
    LabOption,
    PhoneOption,
    RunsOption,
    check_no_file,
    naming_options,
)
from mplab.cli.output import duration, err, out, output_folder, print_json, table
from mplab.cli.plan_table import announce_skipped
from mplab.cli.report_output import change_content
from mplab.cli.run_display import RunDisplay
from mplab.run.reproducing import Reproduction, SecondRun
from mplab.run.reproducing import reproduce as reproduce_bundle
from mplab.run.run_directory import RUNS, RunDirectory

GB = 10**9
MAX_GB = 10
STYLES = {"differs": "red", "cannot be told": "dim"}
_MOST_NAMED = 20


def reproduce(
    file: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="Archive that 'mplab bundle' made.", show_default=False)
    ],
    *,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Make the report again without running the experiment again.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--unpack-to",
            metavar="FOLDER",
            help="Unpack the run into this new folder and keep it, with its new report. By default, it is removed.",
            show_default=False,
            callback=output_folder,
        ),
    ] = None,
    lab: LabOption = "",
    phone: PhoneOption = "",
    allow_hooks: AllowHooksOption = False,
    allow_lab: AllowLabOption = False,
    max_size: Annotated[int, typer.Option(min=1, metavar="GB", help="Unpack no more than this size.")] = MAX_GB,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    if not file.name.endswith(SUFFIX):
        check_no_file(file, "a bundle")
    with _folder(keep) as folder, naming_options(), RunDisplay() as display:

        def reported(bundle: Bundle, remade: Rebuilt) -> None:
            display.clear()
            if not as_json:
                _show_report(bundle, remade)

        try:
            reproduction = reproduce_bundle(
                file,
                folder,
                only_report=report_only,
                lab=lab,
                phone=phone,
                allow_hooks=allow_hooks,
                allow_lab=allow_lab,
                max_bytes=max_size * GB,
                runs=runs,
                watch=display.watch(_begun),
                reported=reported,
            )
        except DamagedBundleError as error:
            if as_json:
                print_json({"format": 1, "bundle": str(file), "broken": [asdict(part) for part in error.broken]})
            raise
        display.clear()
        if as_json:
            print_json(_content(reproduction))
        elif reproduction.second is not None:
            _show_results(reproduction.second)
    reproduction.check()
    if not reproduction.good:
        raise typer.Exit(1)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder into which a bundle is unpacked: `keep`, or a temporary folder (in $TMPDIR).

    Raises:
        InputError: `keep` exists already.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="mplab-reproduce-") as temporary:
            yield Path(temporary)
        return
    if keep.exists():
        raise InputError(f"--unpack-to {keep}: already exists. Name a new folder")
    yield keep


def _begun(directory: Path, _complete: int) -> None:
    manifest = RunDirectory(directory).read_manifest()
    about = f"{len(manifest.plan.cells)} cells, about {duration(manifest.plan.estimate_s)}"
    err.print(f"{manifest.experiment.title}: {about}", style="bold")
    announce_skipped(manifest.plan)


def _show_report(bundle: Bundle, remade: Rebuilt) -> None:
    out.print(f"{bundle.run.manifest.run_id}: all checksums hold", markup=False, soft_wrap=True)
    if not remade.differences:
        out.print(f"→ the report was made again: {plural(remade.same, 'file')}, every byte the same")
        return
    rows = table("file", "", "how")
    for difference in remade.differences[:_MOST_NAMED]:
        rows.add_row(difference.name, difference.deviation, difference.how, style="red")
    out.print(rows)
    if len(remade.differences) > _MOST_NAMED:
        out.print(f"… and {len(remade.differences) - _MOST_NAMED} more: --json has all")
    if remade.versions:
        rows = table("what", "then", "here")
        for name, then, here in remade.versions:
            rows.add_row(name, then or "none", here or "none")
        out.print(rows)
    else:
        out.print("All versions are those of the run: raw data or the analysis must have been changed by hand.")
    out.print(f"→ the report is not the same: {plural(len(remade.differences), 'file')}; {remade.same} are")


def _show_results(second: SecondRun) -> None:

    agreed = second.agreed
    rows = table("result", "what", "then → now", "n")
    for change in agreed.compared.changes:
        verdict = OF_CHANGE[change.verdict]
        if change.metric.headline or verdict == "differs":
            sizes = f"{len(change.before.values)}, {len(change.after.values)}"
            rows.add_row(verdict, name_of(change), change_text(change), sizes, style=STYLES.get(verdict, ""))
    out.print(rows)
    out.print()
    rows = table("result", "contrast", "then → now", "pairs")
    for pair in printed_pairs(agreed.contrasts):
        sizes = ", ".join(str(contrast.pairs if contrast else 0) for contrast in (pair.before, pair.after))
        rows.add_row(pair.agreement, pair.name, pair.text, sizes, style=STYLES.get(pair.agreement, ""))
    out.print(rows)
    for warning in agreed.compared.warnings:
        err.print(f"! {warning}", style="yellow", markup=False)
    out.print(f"\nThe new run: {second.run.path}", markup=False, soft_wrap=True)
    words = {
        "agrees": "the results agree",
        "differs": f"the results differ: {plural(len(agreed.differing), 'result')} not as before",
        "cannot be told": "too few values to say whether the results agree",
    }
    out.print(f"→ {words[agreed.agreement]}")


def _content(reproduction: Reproduction) -> dict[str, object]:
    bundle, remade = reproduction.bundle, reproduction.report
    return {
        "format": 1,
        "bundle": str(bundle.archive),
        "run": bundle.run.manifest.run_id,
        "broken": [],
        "report": {
            "same": not remade.differences,
            "files": remade.same,
            "differences": [asdict(difference) for difference in remade.differences],
            "versions": [{"what": name, "then": then, "here": here} for name, then, here in remade.versions],
        },
        "results": _results(reproduction.second) if reproduction.second else None,
    }


def _results(second: SecondRun) -> dict[str, object]:

    progress, agreed = second.run.progress, second.agreed
    return {
        "run": str(second.run.path),
        "outcomes": {"ok": progress.ok, "invalid": progress.invalid, "failed": progress.failed},
        "agreement": agreed.agreement,
        "differing": len(agreed.differing),
        "warnings": list(agreed.compared.warnings),
        "metrics": [{"agreement": OF_CHANGE[c.verdict], **change_content(c)} for c in agreed.compared.changes],
        "contrasts": [_contrast(pair) for pair in agreed.contrasts],
    }


def _contrast(pair: ContrastPair) -> dict[str, object]:
    return {
        "agreement": pair.agreement,
        **pair.key._asdict(),
        "headline": pair.headline,
        "before": asdict(pair.before) if pair.before else None,
        "after": asdict(pair.after) if pair.after else None,
    }
