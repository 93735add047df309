"""The example of docs/python.md, and a run from Python that is interrupted and resumed, in the virtual lab."""

import re
import subprocess
import sys
from pathlib import Path

from mplab.base.places import ROOT
from tests.integration.conftest import environment

EXPERIMENT = """\
mplab: 1
name: tiny
transports: [sptcp-wifi]
links: [baseline]
scenarios: [{download: {sizes: [10 kB]}}]
tolerance: {rtt: 60 %, rate: 50 %}
budgets: {download_time: {at_most: 1 ms}}
retries: 2
"""

INTERRUPTED = """
import os, signal, sys
import mplab.run
from mplab.base.errors import InterruptedRunError

paths = []

def stop(event):
    if event.event == "cell_finished":
        os.kill(os.getpid(), signal.SIGINT)

plan = mplab.run.plan(sys.argv[1], repetitions=2)
watch = mplab.run.RunCallbacks(begun=lambda path, complete: paths.append(path), event=stop)
try:
    mplab.run.execute(plan, report=False, watch=watch)
except InterruptedRunError as error:
    print(error)
run = mplab.run.resume(paths[0], report=False)
print(run.resumed, *run.outcomes.values())
"""

BUNDLE = """
import sys
from pathlib import Path
from mplab.analysis.bundle.write import Options, write_bundle

write_bundle(Path(sys.argv[1]), Path(sys.argv[2]), Options())
"""


def python(code: str, *arguments: str, folder: Path) -> list[str]:
    """Run a program and return the lines that it prints. Fail if it prints to standard error."""
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, cwd=folder, env=environment(folder)
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout.splitlines()


def test_the_example_of_the_manual_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    example, again, show = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "demo.yaml").write_text(EXPERIMENT)
    about, ran, *_, broken = python(example, folder=tmp_path)
    assert about.startswith("3 cells, about ")
    (run,) = (tmp_path / "runs").iterdir()
    assert ran == f"runs/{run.name} 3 of 3 cells are ok"
    assert broken.startswith("broken: download · sptcp-wifi · baseline · download_time")
    assert (run / "report" / "index.html").is_file()
    lines = python("import mplab.run\nplan = mplab.run.plan('experiments/demo.yaml')\n" + show, folder=tmp_path)
    assert lines == ["0001-download-sptcp-wifi-baseline-r1 ok"]
    (archive,) = re.findall(r'"(.*\.tar\.gz)"', again)
    python(BUNDLE, f"runs/{run.name}", archive, folder=tmp_path)
    only_report = again.replace('"unpacked")', '"unpacked", only_report=True)')
    assert only_report != again
    assert python(f"import mplab.run\n{only_report}print(done.good, done.report.same > 0)", folder=tmp_path) == [
        "True True"
    ]


def test_a_run_from_python_is_interrupted_and_resumed(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    stopped, resumed = python(INTERRUPTED, "tiny.yaml", folder=tmp_path)
    assert stopped.startswith("stopped after 1 of 2 cells; continue with: mplab resume runs/")
    assert resumed == "True ok ok"
