"""Distributions that are not installed: a folder for ``sys.path`` with packages, and what registers their plug-ins."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mplab.base.programs import CHECKOUT


def distribution(folder: Path, name: str, files: Mapping[str, str], points: Mapping[str, Mapping[str, str]]) -> None:
    """Write a distribution into a folder.

    Args:
        folder: for ``sys.path``; several distributions may share one.
        name: of the distribution.
        files: path in `folder` → text.
        points: group of entry points → name → object.
    """
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in own.items()) for group, own in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))


def mplab(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``mplab`` with the distributions of a folder."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "mplab", *arguments]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
