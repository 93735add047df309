"""``mplab init``."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.output import out
from orchestrator.errors import InputError

_TEMPLATE = """\
# An experiment of your own: change it, then run it.
#   mplab plan {name}.yaml     what would be run, and for how long
#   mplab run {name}.yaml      run it; ends in a report
mplab: 1
name: {name}
title: WiFi, LTE or both?
seed: 1
repetitions: 5
transports: [sptcp-wifi, sptcp-lte, mptcp]     # mplab transports
links:                                          # mplab links; or your own:
  - name: my-links
    wifi: {{down: 20 Mbit/s, up: 5 Mbit/s, rtt: 30 ms}}
    lte: {{down: 12 Mbit/s, up: 4 Mbit/s, rtt: 60 ms, loss: 0.1 %}}
scenarios:                                      # mplab scenarios
  - download: {{sizes: [100 kB, 1 MB]}}
"""


def init(
    file: Annotated[Path, typer.Argument(help="Where to write it.", show_default=True)] = Path("first.yaml"),
) -> None:
    """Write an experiment file to begin with."""
    if file.exists():
        raise InputError(f"{file}: exists already; name another file")
    if file.suffix not in {".yaml", ".yml"}:
        raise InputError(f"{file}: an experiment file ends in .yaml")
    name = "".join(c if c.isalnum() else "-" for c in file.stem.lower()).strip("-")[:40] or "first"
    file.write_text(_TEMPLATE.format(name=name), encoding="utf-8")
    out.print(f"{file} is written. Next: mplab plan {file}, then mplab run {file}", markup=False)
