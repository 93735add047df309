"""Destinations outside the lab that a lab file opens, and scenarios that need them."""

import random
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.base.places import ROOT
from mplab.base.plugins import SCENARIOS
from mplab.drivers.proxy.docker.settings import DockerProxyFile
from mplab.lab.catalog import catalog
from mplab.userfiles.experiments.app import android_apps
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.labs.internet import InternetFile, public_networks
from mplab.userfiles.labs.labuse import use_lab

LAB = """\
mplab: 1
name: bench
phones: {one: {driver: adb, serial: A1B2}}
proxy:
  listen: [203.0.113.5]
"""


def opened(rules: str) -> str:
    return LAB + f"  internet: {{allow: ['{rules}']}}\n"


def plan(tmp_path: Path, lab: str, *scenarios: str) -> Experiment:
    (tmp_path / "lab.yaml").write_text(lab)
    path = tmp_path / "example.yaml"
    lines = ["mplab: 1", "name: apps", "repetitions: 1", "cell_timeout: 20 min", "transports: [sptcp-wifi]"]
    lines += ["links:", "  - name: open", "    wifi: {down: unlimited, up: unlimited, rtt: 0 ms}"]
    lines += ["    lte: {down: unlimited, up: unlimited, rtt: 0 ms}", "scenarios:"]
    path.write_text("\n".join([*lines, *(f"  - {name}" for name in scenarios)]) + "\n")
    return load_experiment(path, catalog=catalog(), lab=use_lab(tmp_path / "lab.yaml"))


def test_public_addresses_are_those_of_the_internet() -> None:
    chance = random.Random(7)  # noqa: S311 - addresses, no secrets
    for _ in range(2000):
        address = IPv4Address(chance.getrandbits(32))
        listed = any(address in network for network in public_networks())
        assert listed == (address.is_global and not address.is_multicast), address


@pytest.mark.parametrize("text", ["10.65.0.2", "127.0.0.1", "169.254.169.254", "192.168.1.1", "224.0.0.1", "0.0.0.1"])
def test_no_private_or_special_address_is_public(text: str) -> None:
    assert not any(IPv4Address(text) in network for network in public_networks())


def test_without_the_key_the_proxy_connects_to_the_lab_only(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(LAB)
    assert use_lab(tmp_path / "lab.yaml").internet == ()
    assert not DockerProxyFile.model_validate({}).upstream_names


def test_rules_become_those_of_the_proxy() -> None:
    rules = InternetFile.model_validate({"allow": ["public:80,443", "192.168.7.0/24:*"]}).proxy_rules()
    assert len(rules) == len(public_networks()) + 1
    assert rules[-1] == "192.168.7.0/24:*"
    assert all(rule.endswith(":80,443") for rule in rules[:-1])


def test_a_port_is_missing_unless_a_public_rule_has_it() -> None:
    allowed = InternetFile.model_validate({"allow": ["public:80", "198.51.0.0/24:443", "192.168.7.0/24:5222"]})
    assert allowed.missing_ports((80, 443, 5222)) == (5222,)
    assert InternetFile.model_validate({"allow": ["public:*"]}).missing_ports((80, 443, 5222)) == ()


@pytest.mark.parametrize("scenario", ["youtube", "dropbox", "radio", "messenger", "call"])
def test_an_app_that_needs_the_internet_is_refused_without_it(tmp_path: Path, scenario: str) -> None:
    with pytest.raises(InputError) as refused:
        plan(tmp_path, LAB, "download", scenario)
    (line,) = str(refused.value).splitlines()
    assert f"example.yaml:12: scenarios[1]: scenario '{scenario}': the app " in line
    assert "needs the Internet, and the lab's proxy allows no public address at TCP port" in line
    rules = ",".join(str(port) for port in next(iter(android_apps(scenario).values())).internet)
    assert f"internet: {{allow: ['public:{rules}'], names: upstream}}" in line
    assert len(plan(tmp_path, opened(f"public:{rules}"), scenario).scenarios) == 1


def test_names_are_needed_as_well(tmp_path: Path) -> None:
    lab = LAB + "  internet: {allow: ['public:443'], names: lab}\n"
    with pytest.raises(InputError, match="the lab's proxy resolves no names"):
        plan(tmp_path, lab, "youtube")


def test_scenarios_of_the_labs_own_servers_need_no_internet(tmp_path: Path) -> None:
    assert len(plan(tmp_path, LAB, "download", "web", "firefox", "udp-jitter").scenarios) == 4


def test_every_app_that_is_not_a_browser_says_what_it_needs() -> None:
    for scenario in SCENARIOS:
        for name, app in android_apps(scenario).items():
            assert bool(app.internet) == (scenario not in {"web", "firefox"}), (scenario, name)


def test_apps_yaml_is_planned_for_a_real_phone_with_the_internet(tmp_path: Path) -> None:
    experiment = ROOT / "experiments" / "apps.yaml"
    paths = "wifi: {server: s, ip: 10.0.0.2}, lte: {server: s, ip: 10.0.0.3}"
    shaped = f"servers: {{s: {{interface: eth0}}}}\nphones: {{one: {{driver: adb, serial: A1B2, {paths}}}}}"
    for lab, refused in ((LAB, True), (opened("public:*"), False)):
        (tmp_path / "lab.yaml").write_text(lab.replace("phones: {one: {driver: adb, serial: A1B2}}", shaped))
        use = use_lab(tmp_path / "lab.yaml")
        if refused:
            with pytest.raises(InputError) as problems:
                load_experiment(experiment, catalog=catalog(), lab=use)
            assert str(problems.value).count("needs the Internet") == 9
        else:
            assert load_experiment(experiment, catalog=catalog(), lab=use).scenarios
