"""Runs for a cluster: cells with real captures, an invalid and a partial cell; scores that a gate can block."""

import shutil
from pathlib import Path
from typing import Any

from tests.foreign import Foreign
from tests.unit.analysis.synthetic import PNG, Synthetic

CAPTURES = Path(__file__).parents[4] / "analysis" / "mptrace" / "testdata"
WAITING = '''"""Scores of a toy download, each of which may have to wait."""

import os
import time
from pathlib import Path

from mplab.analysis.metric import Metric, Value

GATE = Path({gate!r})
METRICS = (
    Metric("time", "Download time", "s", "lower", ("size",), headline=True, source="RFC 0 §1", limits=(0, 900)),
    Metric("flows", "Subflows", "", "neither"),
)


def score(observations, tables, folder):
    if GATE.is_dir():
        (GATE / f"{{os.getpid()}} {{folder.name}}").touch()
        while (GATE / "closed").exists():
            time.sleep(0.02)
    done = [o for o in observations if o["event"] == "done"]
    values = [Value("time", o["seconds"], {{"size": o["size"]}}) for o in done]
    return [*values, Value("flows", float(tables["subflows"].height))]
'''


class Runs:
    """Two folders with the same runs, ``alone`` and ``spread``, and the scores of their scenario.

    Args:
        root: parent of all folders.
        foreign: folder where the scenario is installed.
        count: number of runs.
        repetitions: of each run; a repetition is three cells.
    """

    def __init__(self, root: Path, foreign: Foreign, count: int = 2, repetitions: int = 2) -> None:
        self.gate = root / "gate"
        self.alone, self.spread = root / "alone", root / "spread"
        for day in range(1, count + 1):
            builder = Synthetic(root / "made", repetitions=repetitions, day=day, outcome=_outcome)
            run = builder.build()
            for cell in sorted((run / "cells").iterdir())[:2]:
                for name in ("wlan0", "rmnet0"):
                    shutil.copy(CAPTURES / f"two-paths-{name}.pcapng", cell / f"phone-{name}.pcapng")
                (cell / "attempts" / "1").mkdir(parents=True)
                (cell / "screenshots").mkdir()
                (cell / "screenshots" / "end.png").write_bytes(PNG)
                (cell / "logs").mkdir()
                (cell / "logs" / "agent.log").write_text("ready\n")
                (cell / "attempts" / "1" / "cell.json").write_text("{}")
            shutil.move(run, self.alone / run.name)
        self.scores = WAITING.format(gate=str(self.gate))
        """Text of the scenario's module `scores`."""
        foreign.scenario("toy", self.scores)
        shutil.copytree(self.alone, self.spread)

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.alone.iterdir())


def _outcome(spec: Any) -> str:
    return {4: "invalid", 5: "partial"}.get(spec["index"], "ok")


def content(folder: Path) -> dict[str, bytes | None]:
    """Return path → content of everything below a folder; None for folders."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}
