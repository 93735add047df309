"""The direct route is planned only in labs that have it."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.base.places import LABS
from mplab.base.programs import MPTCPIZE
from mplab.lab.catalog import catalog
from mplab.run.hostside.ready import programs_of_run
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import load_experiment
from mplab.userfiles.labs.labuse import find_lab

EXPERIMENT = """\
mplab: 1
name: direct
transports:
  - sptcp-wifi: {{via: {sptcp}}}
  - mptcp: {{via: {mptcp}}}
links: [baseline]
scenarios: [download]
"""


def read(folder: Path, lab: str = "virtual", sptcp: str = "direct", mptcp: str = "direct") -> Experiment:
    file = folder / "direct.yaml"
    file.write_text(EXPERIMENT.format(sptcp=sptcp, mptcp=mptcp))
    return load_experiment(file, catalog=catalog(), lab=find_lab(lab, folder))


@pytest.mark.parametrize(
    ("lab", "reason"),
    [
        ("emulated-phone", "no route to the origin"),
        ("docker-proxy", "a proxy in containers"),
        ("virtual-router", "the router"),
    ],
)
def test_a_lab_without_the_direct_route_is_refused_at_its_line(tmp_path: Path, lab: str, reason: str) -> None:
    assert (LABS / f"{lab}.yaml").is_file()
    with pytest.raises(InputError) as refused:
        read(tmp_path, lab)
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[0].rpartition("/")[2] for line in lines] == ["direct.yaml:4", "direct.yaml:5"]
    assert all(reason in line for line in lines), lines
    read(tmp_path, lab, "proxy", "proxy")


REFUSED = """\
mplab: 1
name: direct
transports:
  - mpflex: {via: direct}
  - mpflex:minrtt: {via: direct, label: minrtt}
  - sptcp-balanced: {via: direct}
  - mptcp: {via: origin}
links: [baseline]
scenarios: [download]
"""


def test_a_transport_that_needs_agent_or_proxy_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "refused.yaml"
    file.write_text(REFUSED)
    with pytest.raises(InputError) as refused:
        load_experiment(file, catalog=catalog())
    lines = [line.partition("refused.yaml:")[2] for line in str(refused.value).splitlines()]
    session = "'direct' is not possible: the session of MPFlex ends at the proxy, and no origin speaks its protocol"
    turns = "'direct' is not possible: the agent assigns each connection to the next network, and applications cannot"
    assert lines == [
        f"4: transports[0].mpflex.via: {session}. Allowed: proxy",
        f"5: transports[1].mpflex:minrtt.via: {session}. Allowed: proxy",
        f"6: transports[2].sptcp-balanced.via: {turns}. Allowed: proxy",
        "7: transports[3].mptcp.via: found 'origin'. Allowed: proxy, direct",
    ]


def test_the_record_names_route_and_title_only_where_they_differ_from_the_default(tmp_path: Path) -> None:
    direct, default = (read(tmp_path, sptcp=via, mptcp=via).record().transports for via in ("direct", "proxy"))
    assert [transport.direct for transport in (*direct, *default)] == [True, True, False, False]
    assert [transport.title for transport in direct] == ["TCP over WiFi, direct", "Multipath TCP, direct"]
    assert [transport.title for transport in default] == ["TCP over WiFi", "Multipath TCP"]
    assert "via" not in {option for transport in default for option in transport.options}
    assert "ends at the origin" in direct[0].route
    assert "ends at the proxy" in default[0].route


def test_only_direct_multipath_tcp_needs_the_program_that_changes_sockets(tmp_path: Path) -> None:
    assert MPTCPIZE in programs_of_run(read(tmp_path))
    assert MPTCPIZE not in programs_of_run(read(tmp_path, mptcp="proxy"))
