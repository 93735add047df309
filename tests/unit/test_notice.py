"""NOTICE names the Go modules that are linked into the programs: each of them, and no others."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = re.findall(r"^\$\(BIN\)/\w+: PACKAGE := (\./\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
MODULE = "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}"
GO = {"PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}


def test_notice_names_the_linked_go_modules() -> None:
    assert len(PACKAGES) == 5
    argv = ["go", "list", "-deps", "-f", MODULE, *PACKAGES]
    listed = subprocess.run(argv, cwd=ROOT, env=os.environ | GO, capture_output=True, text=True, check=True).stdout
    named = re.findall(r"^(\S+\.\S+/\S+) {2,}\S", (ROOT / "NOTICE").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(set(listed.split()))
