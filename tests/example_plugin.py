"""Build and install the distribution of ``examples/plugin`` as its author would."""

import shutil
import subprocess
import sys
from pathlib import Path

from mplab.base.places import ROOT


def install(target: Path) -> Path:
    """Build the wheel and install it in a folder; return the folder, for ``PYTHONPATH``.

    Args:
        target: a folder that does not exist.
    """
    source = target.with_name(f"{target.name}-source")  # a build leaves files next to the code
    shutil.copytree(ROOT / "examples" / "plugin", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True)
    return target
