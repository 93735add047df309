"""Build hook of the wheel: builds the Go programs, and adds them and the data files below ``mplab/_data``.

The environment variable ``MPLAB_WHEEL_ARCH`` (``amd64`` or ``arm64``) selects the processor; by default, it is that of
this machine. An editable installation is not changed: it uses the files of the checkout.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}
TAGS = {"amd64": "py3-none-manylinux_2_17_x86_64", "arm64": "py3-none-manylinux_2_17_aarch64"}
"""Processor → tag of the wheel. The programs are static, so they need no C library."""
PROGRAMS = {
    "linkem": "./linkem/cmd/linkem",
    "mpflex": "./mpflex/cmd/mpflex",
    "mptrace": "./analysis/mptrace/cmd/mptrace",
    "phonelog": "./phonelog/cmd/phonelog",
    "applet": "./phone-emulator/applet",
}
DATA = (
    ".dockerignore",
    "analysis/mptrace/schema.json",
    "docs/schema",
    "experiments",
    "go.mod",
    "go.sum",
    "mpflex/policies",
    "proxy-docker",  # with the pages and servers of services, which its images contain
    "requirements/lock.txt",
    "router-configs",
    "tools/appium",
)
"""Files and folders that the wheel contains below ``mplab/_data``, with their paths in the checkout."""
LEFT_OUT = ("*.go", "*.pyc", "__pycache__", "tests", "node_modules", "lab.schema.json")


class WheelContents(BuildHookInterface[BuilderConfig]):
    """Adds programs and data files to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the Go programs, and list all further files of the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        architecture = os.environ.get("MPLAB_WHEEL_ARCH") or GOARCH.get(platform.machine(), "")
        if architecture not in TAGS:
            raise ValueError(f"MPLAB_WHEEL_ARCH: {architecture or platform.machine()} is not one of {', '.join(TAGS)}")
        self._temporary = tempfile.TemporaryDirectory(prefix="mplab-wheel-")
        build_data["pure_python"] = False
        build_data["tag"] = TAGS[architecture]
        added = build_data["force_include"]
        for name, package in PROGRAMS.items():
            program = Path(self._temporary.name) / name
            self.app.display_info(f"go build {package} ({architecture})")
            self._build(package, program, architecture)
            added[str(program)] = f"mplab/_data/build/bin/{name}"
        for path in self._data_files():
            place = path.relative_to(self.root)
            if "mplab" in place.parts:  # Hatchling would leave the file out of the package
                copy = Path(self._temporary.name) / place
                copy.parent.mkdir(parents=True, exist_ok=True)
                added[shutil.copy(path, copy)] = f"mplab/_data/{place.as_posix()}"
            else:
                added[str(path)] = f"mplab/_data/{place.as_posix()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove temporary files: the wheel is complete."""
        del version, build_data, artifact_path
        if hasattr(self, "_temporary"):
            self._temporary.cleanup()

    def _build(self, package: str, program: Path, architecture: str) -> None:
        settings = {"CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": architecture, "GOFLAGS": "-mod=readonly"}
        argv = ["go", "build", "-trimpath", "-buildvcs=false"]
        argv += ["-ldflags", f"-s -w -X main.version={self.metadata.version}", "-o", str(program), package]
        try:
            subprocess.run(argv, cwd=self.root, env={**os.environ, **settings}, check=True)
        except FileNotFoundError as error:
            raise RuntimeError("the wheel contains programs in Go: install Go 1.26 or later") from error

    def _data_files(self) -> list[Path]:
        root = Path(self.root)
        if (root / ".git").exists():  # not a user's own lab files, which may contain secrets
            listed = subprocess.run(["git", "ls-files", "-z", "--", *DATA], cwd=root, capture_output=True, check=True)
            files = [root / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
        else:
            files = [
                file for path in map(root.joinpath, DATA) for file in ([path] if path.is_file() else path.rglob("*"))
            ]
        return sorted(
            file
            for file in files
            if file.is_file() and not any(_left_out(part) for part in file.relative_to(root).parts)
        )


def _left_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)
