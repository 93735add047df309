"""Lab files with an emulated phone: a run's plan, before it changes anything."""

from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InputError
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import ADB
from mplab.lab.catalog import android_app, catalog
from mplab.lab.doctor import examine_lab
from mplab.lab.driver import missing_on_phone, programs_of_lab
from mplab.run.planning import plan_of
from mplab.userfiles.experiments.app import android_apps
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, use_lab

EXPERIMENT = """\
mplab: 1
name: tiny
transports: [sptcp-wifi, mptcp]
links: [baseline]
scenarios: [download, dropbox]
"""


def use(tmp_path: Path, phone: str) -> LabUse:
    file = tmp_path / "lab.yaml"
    file.write_text(f"mplab: 1\nname: mine\nphones:\n  one: {phone}\n")
    return use_lab(file)


def test_the_emulated_phone_is_a_lab_of_its_own(tmp_path: Path) -> None:
    lab = use(tmp_path, "{driver: emulated, app_of: {messenger: signal}}")
    assert lab.kind == "emulated"
    assert lab.android
    assert ADB in programs_of_lab(lab)
    assert lab.where() == {"wlan0": "linkem", "rmnet0": "linkem"}
    assert not VIRTUAL.android


def test_apps_are_chosen_in_the_lab_file_or_are_the_first(tmp_path: Path) -> None:
    lab = use(tmp_path, "{driver: emulated, app_of: {messenger: signal}}")
    chosen, first = android_app(lab, "messenger"), next(iter(android_apps("facebook").values()))
    assert chosen is not None
    assert chosen.package == "org.thoughtcrime.securesms"
    assert android_app(lab, "facebook") == first
    assert android_app(lab, "download") is None
    assert android_app(VIRTUAL, "messenger") is None


@pytest.mark.parametrize(
    ("model", "reason"), [("android-13", ""), ("mptcp-095", "out-of-tree 0.95"), ("android-10", "no Multipath TCP")]
)
def test_a_kernel_without_mptcp_costs_that_transport_alone(tmp_path: Path, model: str, reason: str) -> None:
    lab = use(tmp_path, f"{{driver: emulated, model: {model}}}")
    assert reason in missing_on_phone(lab, "mptcp")
    assert bool(missing_on_phone(lab, "mptcp")) == bool(reason)
    assert missing_on_phone(lab, "mpflex") == ""
    file = tmp_path / "tiny.yaml"
    file.write_text(EXPERIMENT)
    plan = plan_of(load_experiment(file, catalog=catalog(), lab=lab))
    assert ("mptcp" in {skipped.transport for skipped in plan.skipped}) >= bool(reason)
    assert "sptcp-wifi" in {cell.transport for cell in plan.cells}


def test_a_scenario_without_an_android_app_is_refused(tmp_path: Path) -> None:
    known = catalog()
    left: dict[str, Any] = {name: apps for name, apps in known.android.items() if name != "dropbox"}
    file = tmp_path / "tiny.yaml"
    file.write_text(EXPERIMENT)
    without = Catalog(known.transports, known.scenarios, known.links_dir, known.shapers, left)
    with pytest.raises(InputError, match=r"tiny\.yaml:5: scenarios\[1\]: scenario 'dropbox' has no Android app"):
        load_experiment(file, catalog=without, lab=use(tmp_path, "{driver: emulated}"))
    assert load_experiment(file, catalog=without).scenario("dropbox").name == "dropbox", "the virtual phone has a page"


WITHOUT_ROOT = "{driver: emulated, root: none}"
MOVING = """\
mplab: 1
name: tiny
transports: [sptcp, sptcp-lte, mpflex, mptcp]
links:
  - name: moving
    wifi: {down: 10 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}
    lte: {down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms}
    changes:
      - {at: 1 s, path: wifi, radio: off}
      - {at: 2 s, path: lte, route: default}
      - {at: 3 s, path: wifi, interface: down}
scenarios: [download]
"""


def test_a_phone_without_root_runs_what_needs_none(tmp_path: Path) -> None:
    lab = use(tmp_path, WITHOUT_ROOT)
    assert lab.unrooted
    assert not use(tmp_path, "{driver: emulated, model: android-16}").unrooted, "it is said, never assumed"
    assert not VIRTUAL.unrooted
    file = tmp_path / "tiny.yaml"
    file.write_text(EXPERIMENT.replace("sptcp-wifi, mptcp", "sptcp, sptcp-lte, mpflex, mptcp").replace(", dropbox", ""))
    plan = plan_of(load_experiment(file, catalog=catalog(), lab=lab))
    assert {cell.transport for cell in plan.cells} == {"sptcp", "sptcp-lte", "mpflex"}
    assert [skipped.transport for skipped in plan.skipped] == ["mptcp"]
    assert "no MPTCP endpoint can be added" in missing_on_phone(lab, "mptcp")


@pytest.mark.parametrize(
    ("phone", "level", "words"),
    [
        ("{driver: emulated, model: android-16, root: none}", "warning", "not used: runs use only apps"),
        ("{driver: emulated, model: android-16}", "missing", "'root: none' in the lab file"),
    ],
)
def test_the_doctor_tells_a_phone_without_root_from_one_that_lacks_it(
    tmp_path: Path, phone: str, level: str, words: str
) -> None:
    lab = use(tmp_path, phone)
    assert lab.file is not None
    checks = {check.name: check for check in examine_lab(lab.file, "lab.yaml")}
    if "phone one: root" not in checks:
        pytest.skip("not installed: what an emulated phone is made of")
    root = checks["phone one: root"]
    assert root.level == level
    assert words in f"{root.found}; {root.remedy}"


def test_what_would_go_past_the_transport_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(EXPERIMENT)
    with pytest.raises(InputError) as caught:
        load_experiment(file, catalog=catalog(), lab=use(tmp_path, WITHOUT_ROOT))
    problem, _, allowed = str(caught.value).partition(" Allowed there: ")
    assert problem == (
        f"{file}:5: scenarios[1]: scenario 'dropbox' has no proxy setting, and phone 'one' is used without root: "
        "its traffic would go past the transport."
    )
    assert {"download", "firefox", "web"} <= set(allowed.split(", ")) <= set(SCENARIOS) - {"dropbox"}


def test_changes_that_root_alone_can_make_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(MOVING)
    with pytest.raises(InputError) as caught:
        load_experiment(file, catalog=catalog(), lab=use(tmp_path, WITHOUT_ROOT))
    needs = "needs root, and one is used without root: allowed: values of the path, radio"
    assert str(caught.value).splitlines() == [
        f"{file}:5: links[0]: link 'moving': lte at 2 s: route: {needs}",
        f"{file}:5: links[0]: link 'moving': wifi at 3 s: interface: {needs}",
    ]
