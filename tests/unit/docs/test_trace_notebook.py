import os
import re
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
import pytest

from mplab.base.places import ROOT
from mplab.base.programs import MPTRACE
from tests import notebook

NOTEBOOK = ROOT / "docs" / "examples" / "traces.ipynb"


def test_the_notebook_makes_the_outputs_that_it_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All outputs but the images are equal: captures and mptrace are those of the repository."""
    (tmp_path / "captures").symlink_to(ROOT / "analysis" / "mptrace" / "testdata")
    monkeypatch.setenv("PATH", str(MPTRACE.path().parent), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    content = notebook.read(NOTEBOOK)
    stored = [cell["outputs"] for cell in content["cells"] if cell["cell_type"] == "code"]
    with pl.Config():  # restores polars' options, which the notebook sets
        made = notebook.outputs(notebook.code(content))
    plt.close("all")
    assert [list(map(shown, cell)) for cell in made] == [list(map(shown, cell)) for cell in stored]
    assert sum("image/png" in output.get("data", {}) for cell in made for output in cell) >= 5


def shown(output: notebook.Output) -> tuple[str, list[str], str]:
    """Return the kind of an output, its types of data, and a frame's HTML."""
    data = output.get("data", {})
    return output["output_type"], list(data), "".join(data.get("text/html", ()))


@pytest.mark.parametrize("name", ["results", "traces"])
def test_a_notebook_has_no_path_of_a_computer(name: str) -> None:
    text = (NOTEBOOK.parent / f"{name}.ipynb").read_text(encoding="utf-8")
    assert not re.findall(r"/(?:home|root|tmp|work|Users)/", text)
