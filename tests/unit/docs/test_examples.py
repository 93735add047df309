"""The YAML examples of the manual are accepted by the programs that read such files.

The keys of an example identify the kind of its file. A part of a file gets the keys that the file needs.
"""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mplab.base.errors import MplabError
from mplab.base.places import ROOT
from mplab.cli.main import app
from mplab.device.screen.load import load_script
from mplab.userfiles.experiments.app import load_android_apps
from mplab.userfiles.labs.lab import load_lab
from mplab.userfiles.strict.yaml import parse_yaml
from tests.manual import BLOCKS, Block

EXAMPLES = [block for block in BLOCKS if block.language == "yaml" and block.mark != "not run"]
PATH = "{down: 7040 kbit/s, up: 2020 kbit/s, rtt: 50 ms}"
EXPERIMENT = {
    "mplab": "1",
    "name": "example",
    "repetitions": "10",
    "transports": "[sptcp-wifi, sptcp-lte, mptcp]",
    "links": "[baseline]",
    "scenarios": "[{download: {sizes: [100 kB, 1 MB]}}, {web: {sites: [search]}}]",
}
LINK = {"title": "Example", "wifi": PATH, "lte": PATH}
LAB = {"mplab": "1", "name": "example", "routers": "{wifi: {host: 192.168.1.1, interface: phy0-ap0}}"}
CAMPAIGN = {"mplab_campaign": "1", "name": "example", "experiments": "[mine.yaml]"}


def whole(block: Block, base: Mapping[str, str]) -> str:
    """Return the example with the keys of `base` that it does not have; inherited keys are left out."""
    data = parse_yaml(block.text.encode(), block.name).data
    needed = {"mplab", "name"} if "extends" in data and "mplab" in base else set() if "extends" in data else set(base)
    missing = [key for key in base if key in needed and key not in data]
    return "".join(f"{key}: {base[key]}\n" for key in missing) + block.text


def run(*words: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{result.exception} {result.output}"


def check_experiment(block: Block, desk: Path) -> None:
    data = parse_yaml(block.text.encode(), block.name).data
    (desk / "x.yaml").write_text(whole(block, EXPERIMENT), encoding="utf-8")
    given = [f"--set={name}=given" for name, value in data.get("vars", {}).items() if value is None]
    run("plan", "x.yaml", *given)


def check_link(block: Block, desk: Path) -> None:
    """Check a link condition in the folder of the conditions, so that it can extend another one."""
    links = desk / "links-of-example" / "links"
    links.mkdir(parents=True)
    for path in (ROOT / "router-configs" / "links").glob("*.yaml"):
        (links / path.name).symlink_to(path)
    (links.parent / "traces").symlink_to(ROOT / "router-configs" / "traces")
    (links / "example.yaml").write_text(whole(block, LINK), encoding="utf-8")
    run("links", "lint", str(links / "example.yaml"))


def check_lab(block: Block, desk: Path) -> None:
    (desk / "lab.yaml").write_text(whole(block, LAB), encoding="utf-8")
    load_lab(desk / "lab.yaml")


def check_campaign(block: Block, desk: Path) -> None:
    (desk / "x.yaml").write_text(whole(block, CAMPAIGN), encoding="utf-8")
    run("campaign", "x.yaml", "--dry-run")


def check_policy(block: Block, desk: Path) -> None:
    (desk / "policy.yaml").write_text(block.text, encoding="utf-8")
    command = [str(ROOT / "build" / "bin" / "mpflex"), "policy", "check", "policy.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check_apps(block: Block, desk: Path) -> None:
    (desk / "app.yaml").write_text(block.text, encoding="utf-8")
    load_android_apps(desk)


def check_scripted_app(block: Block, desk: Path) -> None:
    (desk / "script.yaml").write_text(block.text, encoding="utf-8")
    load_script(desk / "script.yaml")


KINDS: Mapping[str, Callable[[Block, Path], None]] = {
    "package": check_scripted_app,
    "policy": check_policy,
    "android": check_apps,
    **dict.fromkeys(("mplab_campaign", "experiments", "notify", "retention"), check_campaign),
    **dict.fromkeys(("routers", "servers", "phones", "proxy"), check_lab),
    **dict.fromkeys(("wifi", "lte", "sweep", "changes"), check_link),
    **dict.fromkeys(
        ("scenarios", "transports", "links", "extends", "stop", "hooks", "budgets", "smallest_effect"), check_experiment
    ),
}
"""Key of an example → check of the kind of file that has it; the first key that occurs decides."""


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: block.name)
def test_an_example_is_accepted(block: Block, desk: Path) -> None:
    data: dict[str, Any] = parse_yaml(block.text.encode(), block.name).data
    check = next((check for key, check in KINDS.items() if key in data), None)
    assert check is not None, f"no kind of file has the keys {list(data)}"
    check(block, desk)


@pytest.mark.parametrize(
    "text",
    ["scenarios: [nosuch]\n", "wifi: {down: 1}\n", "phones: {one: {driver: nosuch}}\n", "notify: {on: [nosuch]}\n"],
)
def test_a_wrong_example_is_found(text: str, desk: Path) -> None:
    with pytest.raises((AssertionError, MplabError), match=r"nosuch|unit"):
        test_an_example_is_accepted(Block("page", 1, "yaml", text, "", ""), desk)
