"""Measure which code of the product the tests run: ``python -m tests.covered``, after lanes that recorded it.

``python -m tests.covered start``: prepare; lanes record coverage if `MPLAB_COVERAGE` is set (``make coverage``).
``python -m tests.covered``: print the covered share of each package in ascending order, and write
``build/coverage/coverage.json``. The exit code is 1 if the whole is below the floor in ``tests/coverage-floor.json``.
``python -m tests.covered raise``: the same, then raise the floor to the measured share, rounded down to 0.5 %.
"""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath

from tests.lane import COVERAGE, COVERAGE_CONFIG, GO_PROFILE, ROOT

_FLOOR = ROOT / "tests" / "coverage-floor.json"
_DATA = COVERAGE / "data"
"""Folder of the data files: one for each process, then one for all."""
_PYTHON = ("orchestrator", "analysis", "ui-scenarios", "proxy-docker", "phone-emulator")
_STEP = 0.5
"""Step of the floor, percent."""

Counts = dict[str, list[int]]
"""Package → [covered statements, statements]."""


def start() -> None:
    """Remove earlier data, and write the configuration of coverage.py with absolute paths."""
    shutil.rmtree(COVERAGE, ignore_errors=True)
    _DATA.mkdir(parents=True)
    sources = "".join(f"\n    {ROOT / folder / 'mplab'}" for folder in _PYTHON)
    COVERAGE_CONFIG.write_text(
        f"[run]\nsource ={sources}\nomit = */tests/*\ndata_file = {_DATA / 'python'}\n"
        "parallel = true\nsigterm = true\npatch = subprocess, _exit\n"
        "[report]\nexclude_also =\n    if TYPE_CHECKING:\n    @abstractmethod\n    @overload\n"
        "    class .*\\(Protocol.*\\):\n"
    )


def python_counts() -> Counts:
    """Return the counts of the Python packages, from the data of all processes."""
    coverage = (sys.executable, "-m", "coverage")
    config = f"--rcfile={COVERAGE_CONFIG}"
    if any(_DATA.glob("python.*")):
        subprocess.run([*coverage, "combine", "--quiet", "--append", config], check=True)
    target = COVERAGE / "python.json"
    subprocess.run([*coverage, "json", "--quiet", config, "-o", str(target)], check=True, cwd=ROOT)
    counts: Counts = {}
    for file, measured in json.loads(target.read_text())["files"].items():
        summary = measured["summary"]
        _add(counts, str(PurePosixPath(file).parent), summary["covered_lines"], summary["num_statements"])
    return counts


def go_counts() -> Counts:
    """Return the counts of the Go packages; a block counts as covered if any test of any package ran it."""
    blocks: dict[str, tuple[int, bool]] = {}
    for line in GO_PROFILE.read_text().splitlines()[1:]:
        where, size, times = line.rsplit(" ", 2)
        blocks[where] = int(size), blocks.get(where, (0, False))[1] or times != "0"
    counts: Counts = {}
    for where, (statements, ran) in blocks.items():
        package = str(PurePosixPath(where.partition(":")[0]).parent)
        _add(counts, package, statements if ran else 0, statements)
    return counts


def _add(counts: Counts, package: str, covered: int, statements: int) -> None:
    row = counts.setdefault(package, [0, 0])
    row[0] += covered
    row[1] += statements


def share(counts: Counts) -> float:
    """Return the covered share of all packages, percent."""
    return 100 * sum(covered for covered, _ in counts.values()) / max(1, sum(n for _, n in counts.values()))


def show(counts: Mapping[str, Counts]) -> None:
    """Print the packages of each language, in ascending order of their covered share."""
    for language, packages in counts.items():
        print(f"\n{language}: {share(packages):.1f} % of {sum(n for _, n in packages.values())} statements")
        rows = [(100 * covered / n, n, package) for package, (covered, n) in packages.items() if n]
        for percent, statements, package in sorted(rows):
            print(f"{percent:6.1f} % of {statements:5}  {package}")


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code."""
    if arguments == ["start"]:
        start()
        return 0
    counts = {"python": python_counts(), **({"go": go_counts()} if GO_PROFILE.exists() else {})}
    show(counts)
    shares = {language: share(packages) for language, packages in counts.items()}
    (COVERAGE / "coverage.json").write_text(json.dumps({"shares": shares, "packages": counts}, indent=1) + "\n")
    floor = json.loads(_FLOOR.read_text())
    below = [
        f"{name}: {shares[name]:.1f} %, the floor is {floor[name]} %" for name in shares if shares[name] < floor[name]
    ]
    print(*(f"less covered than before: {line}" for line in below), sep="\n", file=sys.stderr)
    if arguments == ["raise"]:
        raised = {name: max(floor[name], math.floor(shares.get(name, 0) / _STEP) * _STEP) for name in floor}
        _FLOOR.write_text(json.dumps(raised, indent=1) + "\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
