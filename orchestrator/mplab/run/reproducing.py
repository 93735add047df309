"""Reproduce a run from its bundle: make its report again, run its experiment again, and compare the results.

Imports the analysis, which is slow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.bundle.agreement import Agreed, agree
from mplab.analysis.bundle.archive import MAX_BYTES
from mplab.analysis.bundle.read import Bundle, open_bundle
from mplab.analysis.bundle.rebuild import Rebuilt, rebuild
from mplab.analysis.record.run import read_run
from mplab.analysis.text import plural
from mplab.base.errors import GateError, InputError, MplabError
from mplab.run.arguments import Argument, ArgumentError
from mplab.run.executing import RunResult, execute
from mplab.run.hostside import host, ready
from mplab.run.planning import PlannedRun, load, only_cells, plan_of
from mplab.run.progress import SILENT, RunCallbacks
from mplab.run.resuming import changed_files, experiment_as_in
from mplab.run.run_directory import RUNS, RunDirectory


@dataclass(frozen=True)
class SecondRun:
    """The experiment of a bundle, run again.

    Attributes:
        run: the new run.
        agreed: comparison of the new run's results with those of the bundle.
    """

    run: RunResult
    agreed: Agreed


@dataclass(frozen=True)
class Reproduction:
    """The outcome of reproducing a bundle.

    Attributes:
        bundle: the bundle, unpacked and checked.
        report: the new report, compared byte for byte with that of the bundle.
        second: the new run of the experiment; None: only the report was made.
    """

    bundle: Bundle
    report: Rebuilt
    second: SecondRun | None = None

    @property
    def good(self) -> bool:
        """Return whether both reports have the same bytes, no result differs, and all cells of the new run are ok."""
        cells_ok = self.second is None or not (self.second.run.progress.failed or self.second.run.progress.invalid)
        return cells_ok and not self.report.differences and not (self.second and self.second.agreed.differing)

    def check(self) -> None:
        """Raise an error if the run was not reproduced. Ignore cells of the new run that are not ok.

        Raises:
            GateError: results differ.
            MplabError: the report differs.
        """
        name = self.bundle.run.manifest.run_id
        if self.second is not None and (differing := self.second.agreed.differing):
            raise GateError(f"{name}: {plural(len(differing), 'result')} not as in {self.second.run.path.name}")
        if differences := self.report.differences:
            raise MplabError(f"{name}: {plural(len(differences), 'file')} of its report not the same when made again")


def reproduce(
    archive: Path | str,
    folder: Path | str,
    *,
    only_report: bool = False,
    lab: Path | str = "",
    phone: str = "",
    allow_hooks: bool = False,
    allow_lab: bool = False,
    max_bytes: int = MAX_BYTES,
    runs: Path | str = RUNS,
    watch: RunCallbacks = SILENT,
    reported: Callable[[Bundle, Rebuilt], None] | None = None,
) -> Reproduction:
    """Check a bundle, make its report again from raw data, then run its experiment again and compare the results.

    Args:
        archive: file that ``mplab bundle`` made.
        folder: new folder that gets the unpacked run and its new report.
        only_report: True: make only the report, run no cell.
        lab, phone: as in `mplab.run.plan`; "": the lab of the bundle.
        allow_hooks, allow_lab: as in `mplab.run.resume`.
        max_bytes: maximum size of the unpacked bundle.
        runs: folder of runs that gets the new run.
        watch: functions that are called during the work.
        reported: called with the bundle and its new report, before the experiment is run again.

    Raises:
        BundleError: the archive is damaged, or is not a bundle.
        InputError: its experiment cannot be run here.
        LabNotReadyError, InterruptedRunError, MplabError, AnalysisError: as `mplab.run.execute`.
    """
    watch.doing("Checking the bundle …")
    bundle = open_bundle(Path(archive), Path(folder), max_bytes=max_bytes)
    planned = None
    if not only_report:
        planned = plan_again(
            bundle,
            lab=str(lab),
            phone=phone,
            runs=Path(runs),
            allow_hooks=allow_hooks,
            allow_lab=allow_lab,
            watch=watch,
        )
    report = remake_report(bundle, watch=watch)
    if reported is not None:
        reported(bundle, report)
    second = run_again(bundle, planned, watch=watch) if planned is not None else None
    return Reproduction(bundle, report, second)


def plan_again(
    bundle: Bundle,
    *,
    lab: str = "",
    phone: str = "",
    runs: Path = RUNS,
    allow_hooks: bool = False,
    allow_lab: bool = False,
    watch: RunCallbacks = SILENT,
) -> PlannedRun:
    """Plan the cells of a bundle on this host: those of its run, even if its experiment has more.

    Raises:
        InputError: no cell of the bundle is ok, its cells cannot be planned here, or its hooks or lab file are not
            allowed.
        LabNotReadyError: something that the lab needs is missing.
    """
    if not bundle.run.counts["ok"]:
        raise InputError(f"{bundle.archive}: no cell of it is ok: a new run would have nothing to be compared with")
    directory = RunDirectory.open(bundle.run.directory)
    manifest = directory.read_manifest()
    experiment = load(directory.experiment_file, lab, phone)
    if experiment.hooks and not allow_hooks:
        raise ready.foreign(experiment.hooks, bundle.archive)
    if not lab and not allow_lab:
        ready.check_lab(experiment.lab, bundle.archive, replaceable=True)
    planned = PlannedRun(experiment, plan_of(experiment), runs)
    here = plan_of(experiment_as_in(manifest, experiment))
    then, now = ({cell.id: cell.hash for cell in cells} for cells in (manifest.plan.cells, here.cells))
    if lab and not then.items() <= now.items():
        watch.warning("the lab is not that of the first run: results may differ for this reason")
        then, now = dict.fromkeys(then, ""), dict.fromkeys(now, "")
    if not then.items() <= now.items():
        lost = sorted(cell for cell, _ in then.items() - now.items())
        reasons = [f"{path}: not the same file" for path in changed_files(manifest, experiment)]
        reasons += [f"{skipped.transport}: {skipped.reason}" for skipped in planned.plan.skipped]
        commit = f"; the run was made with commit {manifest.git.commit}" if manifest.git.commit else ""
        raise ArgumentError(
            f"{bundle.archive}: the experiment cannot be run again as it was: {len(lost)} of its {len(then)} cells are "
            f"not planned here ({', '.join([*lost[:3], *reasons])}): link conditions, scenarios, "
            f"transports or the lab are not the same{commit}. ",
            {Argument.ONLY_REPORT: "still makes the report"},
        )
    ready.check_ready_for(experiment)
    return only_cells(planned, then)


def remake_report(bundle: Bundle, *, watch: RunCallbacks = SILENT) -> Rebuilt:
    """Make the report of a bundle again from its raw data. Raises AnalysisError."""
    git = host.describe_git()
    commit = f"{git.commit}{' with local changes' if git.dirty else ''}" if git.commit else ""
    return rebuild(bundle, versions={**host.describe_versions(), "commit": commit}, progress=watch.analysis)


def run_again(bundle: Bundle, planned: PlannedRun, *, watch: RunCallbacks = SILENT) -> SecondRun:
    """Run the experiment of a bundle, and compare the results with those of the bundle.

    Raises:
        MplabError: no cell of the new run is ok, or an error of `mplab.run.execute`.
    """
    run = execute(planned, watch=watch)
    if not run.progress.ok:
        raise MplabError(f"{run.path}: no cell of the new run is ok: there is nothing to compare")
    return SecondRun(run, agree(read_run(bundle.run.directory), read_run(run.path)))
