"""Replaces ``mplab`` in tests of the scheduler: ``script.py FOLDER run FILE … --runs RUNS --run-id ID``.

The experiment file's name has one word for each try of its runs: ``ok``, ``bad`` (cells that are not ok), ``lab``
(not ready), ``wrong`` (bad input), ``worse``, ``die``, ``hang``, ``slow``, ``slower``; the last word holds for
all further tries.
Each call is appended to ``FOLDER/calls``, with the times of its start and end.
"""

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

from mplab.format.cell import Outcome
from mplab.format.events import EventLog
from mplab.format.plan import CellSpec
from mplab.format.runevents import CellFinished, RunFinished, RunPlanned, RunResumed, RunStarted
from mplab.run.control import RunControl

CELLS = 2


def cell(number: int) -> CellSpec:
    return CellSpec(id=f"000{number}", index=number, block=1, scenario="download", transport="mptcp", link="home")


class Script:
    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self._calls = folder / "calls"
        self._verb, self._what = arguments[:2]
        options = dict(itertools.pairwise(arguments))
        runs = Path(options["--runs"])
        self._run = runs / options["--run-id"] if self._verb == "run" else Path(self._what)
        self._again = "--failed" in arguments
        self._arguments = arguments

    def note(self, word: str) -> None:
        line = json.dumps({"t": time.time(), "word": word, "run": self._run.name, "arguments": self._arguments})
        with self._calls.open("a") as file:
            file.write(f"{line}\n")

    def act(self) -> int:
        """Do the work and return the exit code."""
        if self._verb == "compare":
            if "-worse-" in self._what:
                print("mplab: 1 of 3 checks failed: download time is worse", file=sys.stderr)
                return 4
            damaged = "-damaged-" in self._what
            print("mplab: a table is damaged" if damaged else "mplab: no analysed run of x before", file=sys.stderr)
            return 2
        if self._verb == "run":
            words = Path(self._what).stem.split("-")[1:]
            if words[0] == "wrong":
                print(f"mplab: {self._what}:1: wrong", file=sys.stderr)
                return 2
            if words[0] == "lab" and len(words) == 1:
                print("mplab: phone 1: not there", file=sys.stderr)
                return 3
            self._run.mkdir()
            (self._run / "manifest.json").write_text("{}")
            (self._run / "words").write_text(" ".join(words))
        words = (self._run / "words").read_text().split()
        word, later = words[0], words[1:] or words[:1]
        (self._run / "words").write_text(" ".join(later))
        with EventLog(self._run / "events.jsonl") as events:
            return self._go(word, events)

    def _go(self, word: str, events: EventLog) -> int:
        if self._verb == "run":
            events.append(RunPlanned(cells=(cell(1), cell(2)), estimate_s=2.0))
        else:
            events.append(RunResumed(again=(cell(2).id,) if self._again else ()))
        events.append(RunStarted())
        if word == "lab":
            print("mplab: phone 1: not there", file=sys.stderr)
            return 3
        if word == "busy":
            print("mplab: phone 1 is in use by run y: wait for it", file=sys.stderr)
            return 3
        if word == "hang":
            time.sleep(600)
        scripts: dict[str, tuple[Outcome, ...]] = {"bad": ("ok", "failed"), "worst": ("failed", "failed")}
        outcomes = scripts.get(word, ("ok", "ok"))
        with RunControl(events, sleep=lambda _: time.sleep(0.05)) as control:
            for number, outcome in enumerate(outcomes, 1):
                control.wait_while_paused()
                time.sleep({"slow": 1.0, "slower": 6.0}.get(word, 0.1))
                events.append(CellFinished(cell=cell(number).id, outcome=outcome, duration_s=1.0))
                if word == "die":
                    os.kill(os.getpid(), signal.SIGKILL)
        events.append(RunFinished())
        return 0 if outcomes == ("ok", "ok") else 1


def main() -> int:
    script = Script(Path(sys.argv[1]), sys.argv[2:])
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    script.note("begin")
    try:
        return script.act()
    finally:
        script.note("end")


if __name__ == "__main__":
    sys.exit(main())
