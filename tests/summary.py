"""Summarize the lanes that ran: failed, repeated and skipped tests, and the slowest.

``python -m tests.summary``: reads ``build/tests/LANE/*.xml`` of `tests.lane`, prints a summary, and writes
``build/tests/summary.json``.

With ``CI`` set in the environment, the exit code is 1 if more than 1 % of the tests passed only when repeated, or if
no test of a lane or of a file ran because this machine lacks something.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.lane import RESULTS

_MOST_REPEATED = 0.01
"""Largest share of tests that may need a repetition."""
_SLOWEST = 20


@dataclass
class Outcomes:
    """Outcomes of one test in all of its attempts.

    Args:
        lane: its lane.
        file: its file; of a Go test, its package.
        name: its name in the file.
        outcomes: ``passed``, ``failed`` or ``skipped``, one for each attempt.
        seconds: duration of the first attempt.
        reason: reason of a skip; "" if it was not skipped.
    """

    lane: str
    file: str
    name: str
    outcomes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    reason: str = ""

    @property
    def label(self) -> str:
        """File and name, as pytest prints them."""
        return f"{self.file}::{self.name}"

    @property
    def repeated(self) -> bool:
        """Whether the test passed, but not in its first attempt."""
        return len(self.outcomes) > 1 and self.outcomes[-1] == "passed"


def read(results: Path) -> list[Outcomes]:
    """Return every test of all lanes with its attempts in order."""
    tests: dict[tuple[str, str, str], Outcomes] = {}
    for file in sorted(results.glob("*/*.xml"), key=lambda path: (path.parent.name, path.stem)):
        lane = file.parent.name
        for case in ElementTree.parse(file).iter("testcase"):  # noqa: S314 - written by our own test run
            where = case.get("file") or case.get("classname") or ""
            key = (lane, where, case.get("name") or "")
            test = tests.setdefault(key, Outcomes(*key))
            skipped = case.find("skipped")
            if skipped is not None:
                test.reason = skipped.get("message") or ""
            wrong = case.find("failure") is not None or case.find("error") is not None
            test.outcomes.append("failed" if wrong else "passed" if skipped is None else "skipped")
            test.seconds = test.seconds or float(case.get("time") or 0.0)
    return list(tests.values())


@dataclass(frozen=True)
class LaneNumbers:
    """Numbers of tests of one lane by their last outcome, of repeated tests, and the sum of their seconds."""

    tests: int
    passed: int
    failed: int
    skipped: int
    repeated: int
    seconds: float


def numbers_of(tests: Iterable[Outcomes]) -> Mapping[str, LaneNumbers]:
    """Return the numbers of each lane, by its name."""
    by_lane: dict[str, list[Outcomes]] = {}
    for test in tests:
        by_lane.setdefault(test.lane, []).append(test)
    return {lane: _numbers(by_lane[lane]) for lane in sorted(by_lane)}


def _numbers(tests: Sequence[Outcomes]) -> LaneNumbers:
    last = Counter(test.outcomes[-1] for test in tests)
    repeated, seconds = sum(test.repeated for test in tests), round(sum(test.seconds for test in tests), 1)
    return LaneNumbers(len(tests), last["passed"], last["failed"], last["skipped"], repeated, seconds)


def summary_of(tests: Sequence[Outcomes]) -> Mapping[str, object]:
    """Return the summary as JSON values: numbers of each lane, repeated tests, skips by reason, slowest tests."""
    reasons: dict[str, list[str]] = {}
    for test in tests:
        if test.outcomes[-1] == "skipped":
            reasons.setdefault(test.reason, []).append(test.label)
    return {
        "lanes": {lane: asdict(numbers) for lane, numbers in numbers_of(tests).items()},
        "repeated": [test.label for test in tests if test.repeated],
        "skipped": reasons,
        "without_a_run": without_a_run(tests),
        "slowest": [{"test": test.label, "seconds": round(test.seconds, 1)} for test in slowest(tests)],
    }


def slowest(tests: Iterable[Outcomes]) -> list[Outcomes]:
    """Return the slowest tests, slowest first."""
    return sorted(tests, key=lambda test: -test.seconds)[:_SLOWEST]


def without_a_run(tests: Iterable[Outcomes]) -> list[str]:
    """Return the files, and the Go packages, of which every test was skipped."""
    ran: dict[str, bool] = {}
    for test in tests:
        ran[test.file] = ran.get(test.file, False) or test.outcomes[-1] != "skipped"
    return sorted(file for file, one_ran in ran.items() if not one_ran)


def problems_of(tests: Sequence[Outcomes]) -> list[str]:
    """Return the reasons for which continuous integration fails, apart from failed tests."""
    problems = [f"{file}: every test was skipped" for file in without_a_run(tests)]
    repeated = sum(test.repeated for test in tests)
    if repeated > _MOST_REPEATED * len(tests):
        problems.append(f"{repeated} of {len(tests)} tests were repeated; at most {_MOST_REPEATED:.0%} may be")
    return problems


def lines_of(tests: Sequence[Outcomes]) -> list[str]:
    """Return the summary as text."""
    lines = ["", f"{'lane':<14}{'tests':>7}{'passed':>8}{'failed':>8}{'skipped':>9}{'repeated':>10}{'test time':>11}"]
    lines += [
        f"{lane:<14}{of.tests:>7}{of.passed:>8}{of.failed:>8}{of.skipped:>9}{of.repeated:>10}{of.seconds:>9.0f} s"
        for lane, of in numbers_of(tests).items()
    ]
    lines += ["", f"Slowest {_SLOWEST} tests:", *(f"{test.seconds:8.1f} s  {test.label}" for test in slowest(tests))]
    for title, chosen in (
        ("Passed only when repeated", [test.label for test in tests if test.repeated]),
        ("Skipped", [f"{test.label}: {test.reason}" for test in tests if test.outcomes[-1] == "skipped"]),
        ("Failed", [test.label for test in tests if test.outcomes[-1] == "failed"]),
    ):
        lines += ["", f"{title}: {len(chosen)}", *(f"  {line}" for line in chosen)]
    return lines


def main() -> int:
    """Print the summary and write it as JSON; return 1 if continuous integration must fail for it."""
    tests = read(RESULTS)
    if not tests:
        print("no results of a test lane in build/tests", file=sys.stderr)
        return 1
    print("\n".join(lines_of(tests)))
    (RESULTS / "summary.json").write_text(json.dumps(summary_of(tests), indent=1) + "\n", encoding="utf-8")
    problems = problems_of(tests) if os.environ.get("CI") else []
    print(*(f"CI: {problem}" for problem in problems), sep="\n", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
