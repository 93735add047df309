"""Check a bundle, make its report again from raw data, then run its experiment again and compare the results.

Exit codes: 0 the report has the same bytes and no result differs · 1 the report differs, or cells of the new run
are not ok · 2 the bundle is damaged or none, or its experiment cannot be run here · 3 lab not ready · 4 results
differ.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.bundle.agree import OF_CHANGE, Agreed, ContrastPair, agree, told
from mplab.analysis.bundle.read import Bundle, DamagedBundleError, open_bundle
from mplab.analysis.bundle.remake import Remade, remake
from mplab.analysis.record.run import read_run
from mplab.analysis.text import plural
from mplab.analysis.verdicts.gate import change_text, name_of
from mplab.base.errors import GateError, InputError, MplabError
from mplab.cli.change_output import change_content
from mplab.cli.options import (
    AllowHooksOption,
    AllowLabOption,
    JsonOption,
    LabOption,
    PhoneOption,
    RunsOption,
)
from mplab.cli.output import duration, err, out, print_json, table
from mplab.cli.plan_table import announce_skipped
from mplab.cli.run_display import RunDisplay
from mplab.run import host, ready
from mplab.run.executing import RunResult, execute
from mplab.run.hooks import foreign
from mplab.run.labconsent import check_lab
from mplab.run.planning import PlannedRun, load, plan_of
from mplab.run.resuming import changed_files, experiment_as_in
from mplab.run.run_directory import RUNS, RunDirectory

GB = 10**9
MAX_GB = 10
STYLES = {"differs": "red", "cannot be told": "dim"}
_MOST_NAMED = 20


class Only(StrEnum):
    """What alone is to be reproduced."""

    REPORT = "report"


@dataclass(frozen=True)
class Again:
    """The experiment, run again, and how its results are."""

    run: RunResult
    agreed: Agreed


def reproduce(
    file: Annotated[Path, typer.Argument(metavar="BUNDLE", help="What 'mplab bundle' made.", show_default=False)],
    *,
    only: Annotated[
        Only | None, typer.Option(help="Make the report again, and run nothing.", show_default=False)
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="DIR",
            help="Keep the unpacked run and its new report in a new folder.",
            show_default=False,
        ),
    ] = None,
    lab: LabOption = "",
    phone: PhoneOption = "",
    allow_hooks: AllowHooksOption = False,
    allow_lab: AllowLabOption = False,
    max_size: Annotated[int, typer.Option(min=1, metavar="GB", help="Unpack no more than this.")] = MAX_GB,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    with _folder(keep) as folder:
        bundle = _open(file, folder, max_size * GB, as_json=as_json)
        planned = None if only else _planned(bundle, lab, phone, runs, allow_hooks=allow_hooks, allow_lab=allow_lab)
        remade = _remake(bundle)
        if not as_json:
            _show_report(bundle, remade)
        again = None
        if planned is not None:
            again = _run_again(bundle, planned)
            if not as_json:
                _show_results(again)
        if as_json:
            print_json(_content(bundle, remade, again))
    _end(bundle, remade, again)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where to unpack: a folder to be kept, or one for the time being (in $TMPDIR)."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="mplab-reproduce-") as temporary:
            yield Path(temporary)
        return
    if keep.exists():
        raise InputError(f"--keep {keep}: is there already; name a folder that is not")
    yield keep


def _open(file: Path, folder: Path, max_bytes: int, *, as_json: bool) -> Bundle:

    with err.status("Checking …"):
        try:
            return open_bundle(file, folder, max_bytes=max_bytes)
        except DamagedBundleError as error:
            if as_json:
                broken = [asdict(one) for one in error.broken]
                print_json({"format": 1, "bundle": str(file), "broken": broken})
            raise


def _planned(bundle: Bundle, lab: str, phone: str, runs: Path, *, allow_hooks: bool, allow_lab: bool) -> PlannedRun:
    """The experiment and its cells here. Raises InputError when they are not those of the bundle."""
    if not bundle.run.counts["ok"]:
        raise InputError(f"{bundle.archive}: no cell of it is ok: a new run would have nothing to be compared with")
    directory = RunDirectory.open(bundle.run.directory)
    manifest = directory.read_manifest()
    experiment = load(directory.experiment_file, lab, phone)
    if experiment.hooks and not allow_hooks:
        raise foreign(experiment.hooks, bundle.archive)
    if not lab and not allow_lab:
        check_lab(experiment.lab, bundle.archive)
    planned = PlannedRun(experiment, plan_of(experiment), runs)
    here = plan_of(experiment_as_in(manifest, experiment))
    then, now = ({cell.id: cell.hash for cell in cells} for cells in (manifest.plan.cells, here.cells))
    if lab and then != now:
        err.print("in another lab than the first run: results may differ for that alone", style="yellow")
        then, now = dict.fromkeys(then, ""), dict.fromkeys(now, "")
    if then != now:
        lost, more = dict(then.items() - now.items()), dict(now.items() - then.items())
        examples = sorted(lost or more)[:3]
        reasons = [f"{path}: not the same file" for path in changed_files(manifest, experiment)]
        reasons += [f"{skipped.transport}: {skipped.reason}" for skipped in planned.plan.skipped]
        commit = f"; the run was made with commit {manifest.git.commit}" if manifest.git.commit else ""
        raise InputError(
            f"{bundle.archive}: the experiment cannot be run again as it was: {len(lost)} of its {len(then)} cells are "
            f"not planned here, {len(more)} others are ({', '.join([*examples, *reasons])}): link conditions, "
            f"scenarios, transports or the lab are not the same{commit}. --only report makes the report all the same"
        )
    ready.check_ready_for(experiment)
    return planned


def _remake(bundle: Bundle) -> Remade:

    git = host.describe_git()
    commit = f"{git.commit}{' with local changes' if git.dirty else ''}" if git.commit else ""
    with err.status("Analysing …") as status:
        return remake(
            bundle,
            versions={**host.describe_versions(), "commit": commit},
            progress=lambda p: status.update(f"Analysing: {p.step} {p.done}/{p.total}"),
        )


def _run_again(bundle: Bundle, planned: PlannedRun) -> Again:

    def begun(_directory: Path, _complete: int) -> None:
        about = f"{len(planned.cells)} cells, about {duration(planned.estimate_s)}"
        err.print(f"{planned.experiment.title}: {about}", style="bold")
        announce_skipped(planned)

    with RunDisplay() as display:
        run = execute(planned, watch=display.watch(begun))
    if not run.progress.ok:
        raise MplabError(f"{run.path}: no cell of the new run is ok: there is nothing to compare")
    return Again(run, agree(read_run(bundle.run.directory), read_run(run.path)))


def _show_report(bundle: Bundle, remade: Remade) -> None:
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
        for what, then, here in remade.versions:
            rows.add_row(what, then or "none", here or "none")
        out.print(rows)
    else:
        out.print("All versions are those of the run: raw data or the analysis must have been changed by hand.")
    out.print(f"→ the report is not the same: {plural(len(remade.differences), 'file')}; {remade.same} are")


def _show_results(again: Again) -> None:

    agreed = again.agreed
    rows = table("result", "what", "then → now", "n")
    for change in agreed.compared.changes:
        verdict = OF_CHANGE[change.verdict]
        if change.metric.headline or verdict == "differs":
            sizes = f"{len(change.before.values)}, {len(change.after.values)}"
            rows.add_row(verdict, name_of(change), change_text(change), sizes, style=STYLES.get(verdict, ""))
    out.print(rows)
    out.print()
    rows = table("result", "contrast", "then → now", "pairs")
    for pair in told(agreed.contrasts):
        sizes = ", ".join(str(found.pairs if found else 0) for found in (pair.before, pair.after))
        rows.add_row(pair.agreement, pair.name, pair.text, sizes, style=STYLES.get(pair.agreement, ""))
    out.print(rows)
    for warning in agreed.compared.warnings:
        err.print(f"! {warning}", style="yellow", markup=False)
    out.print(f"\nThe new run: {again.run.path}", markup=False, soft_wrap=True)
    words = {
        "agrees": "the results agree",
        "differs": f"the results differ: {plural(len(agreed.differing), 'result')} not as before",
        "cannot be told": "too few values to say whether the results agree",
    }
    out.print(f"→ {words[agreed.agreement]}")


def _content(bundle: Bundle, remade: Remade, again: Again | None) -> dict[str, object]:
    return {
        "format": 1,
        "bundle": str(bundle.archive),
        "run": bundle.run.manifest.run_id,
        "broken": [],
        "report": {
            "same": not remade.differences,
            "files": remade.same,
            "differences": [asdict(difference) for difference in remade.differences],
            "versions": [{"what": what, "then": then, "here": here} for what, then, here in remade.versions],
        },
        "results": _results(again) if again else None,
    }


def _results(again: Again) -> dict[str, object]:

    progress, agreed = again.run.progress, again.agreed
    return {
        "run": str(again.run.path),
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


def _end(bundle: Bundle, remade: Remade, again: Again | None) -> None:
    """Raise what the command ends with, when not all is well."""
    name = bundle.run.manifest.run_id
    if again is not None and again.agreed.differing:
        raise GateError(f"{name}: {plural(len(again.agreed.differing), 'result')} not as in {again.run.path.name}")
    if remade.differences:
        raise MplabError(
            f"{name}: {plural(len(remade.differences), 'file')} of its report not the same when made again"
        )
    if again is not None and (again.run.progress.failed or again.run.progress.invalid):
        raise typer.Exit(1)
