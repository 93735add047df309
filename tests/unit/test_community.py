"""Files around the code agree with it: the version in CITATION.cff and CHANGELOG.md, the lanes of the workflow."""

import configparser
import re
import tomllib
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
CITATION = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text())


def test_the_citation_has_the_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert CITATION["license"] == project["license"]


def test_the_changelog_begins_with_the_version_of_the_citation() -> None:
    """``tools/release`` compares both with the tag."""
    versions = re.findall(r"^## \[?([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == CITATION["version"]


def test_the_workflow_has_a_job_for_each_lane() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    workflow = YAML(typ="safe").load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    jobs = {*workflow["jobs"]["lane"]["strategy"]["matrix"]["lane"], "summary"}
    lanes = {lane.strip() for lane in tox["tox"]["env_list"].split(",")}
    assert jobs == lanes
    assert {lane.strip() for lane in tox["testenv:summary"]["depends"].split(",")} == lanes - {"summary"}
    assert "python3 -m tests.summary" in [step.get("run") for step in workflow["jobs"]["summary"]["steps"]]
