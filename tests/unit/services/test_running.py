"""Services as a lab runs them: real processes, on loopback."""

import http.client
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import DeviceError, InputError, LabNotReadyError
from mplab.base.nodes import NodeProcess
from mplab.base.programs import Program
from mplab.drivers.origin.certificates import LabAuthority
from mplab.drivers.services import (
    LogMark,
    RunningServices,
    Service,
    ServiceContext,
    load_service,
    service_names,
)
from mplab.format.sites import load_sites


class LocalHost:
    """A host that runs programs on this machine."""

    def spawn(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> NodeProcess:
        with log.open("ab") as output:
            return NodeProcess(subprocess.Popen(argv, stdout=output, stderr=output, env=env))

    def run(self, argv: Sequence[str], **_options: Any) -> Any:
        raise NotImplementedError


class Pages(Service):
    """A web server with one page."""

    name = "pages"
    title = "One page"
    network = "10.65.100.0/24"
    hosts: Mapping[str, str] = {"pages.lab": "10.65.100.1"}
    ports = (8077,)

    def __init__(self, command: Sequence[str] = ()) -> None:
        self.command = command

    def prepare(self, context: ServiceContext) -> None:
        (context.directory / "page").write_text("hello")

    def nginx(self, context: ServiceContext) -> str:
        return f"server {{ root {context.directory}; }}"

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        port_file = context.directory / "port"
        script = (
            "import functools, http.server, sys, pathlib\n"
            "handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n"
            "server = http.server.HTTPServer(('127.0.0.1', 0), handler)\n"
            "pathlib.Path(sys.argv[2]).write_text(str(server.server_port))\n"
            "print('serving', flush=True)\n"
            "server.serve_forever()\n"
        )
        return {"pages": self.command or [sys.executable, "-c", script, str(context.directory), str(port_file)]}

    def check(self, context: ServiceContext) -> None:
        try:
            connection = http.client.HTTPConnection(
                "127.0.0.1", int((context.directory / "port").read_text()), timeout=2
            )
            connection.request("GET", "/page")
            body = connection.getresponse().read()
        except (OSError, ValueError) as error:
            raise DeviceError("pages", f"no page: {error}") from error
        if body != b"hello":
            raise DeviceError("pages", "another page")

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        return {"url": "http://pages.lab/page"}


def running(tmp_path: Path, service: Service) -> RunningServices:
    services = RunningServices([service], directory=tmp_path / "lab", host=LocalHost(), cache=tmp_path / "cache")
    services.prepare(LabAuthority(tmp_path / "certificates"))
    return services


def test_life_of_a_service(tmp_path: Path) -> None:
    services = running(tmp_path, Pages())
    assert services.records == [("pages.lab", "10.65.100.1")]
    assert services.ports == [8077]
    assert services.delay_by_prefix() == {"10.65.100.0/24": 2.0}
    assert services.nginx() == f"server {{ root {tmp_path / 'lab' / 'pages'}; }}"
    services.start(tmp_path)
    try:
        mark = services.mark(["pages"])
        services.check(["pages"])
        assert services.facts("pages") == {"url": "http://pages.lab/page"}
        mark.keep(tmp_path / "kept")
        assert "GET /page" in (tmp_path / "kept" / "pages.log").read_text()
        assert "serving" not in (tmp_path / "kept" / "pages.log").read_text()
        (tmp_path / "lab" / "pages" / "page").write_text("other")
        with pytest.raises(DeviceError, match="another page"):
            services.check(["pages"])
    finally:
        services.stop()


def test_a_program_that_has_died_is_started_again(tmp_path: Path) -> None:
    services = running(tmp_path, Pages())
    services.start(tmp_path)
    try:
        assert services.revive() == []
        (process, _) = services._entries["pages"].running["pages"]
        process.stop()
        with pytest.raises(DeviceError, match="pages has ended"):
            services.check(["pages"])
        with pytest.raises(DeviceError, match="pages has ended"):
            services.check_alive()
        assert services.revive() == ["pages: pages had ended and was started again"]
        services.check(["pages"])
        assert services.revive() == []
    finally:
        services.stop()


def test_logs_that_are_not_there_are_not_kept(tmp_path: Path) -> None:
    (tmp_path / "here.log").write_text("old\n")
    mark = LogMark.of([tmp_path / "here.log", tmp_path / "never.log"])
    with (tmp_path / "here.log").open("a") as file:
        file.write("new\n")
    mark.keep(tmp_path / "kept")
    assert {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()} == {"here.log": "new\n"}


def test_a_service_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    services = running(tmp_path, Pages([sys.executable, "-c", "import sys; sys.exit('no such port')"]))
    with pytest.raises(DeviceError, match=r"pages has ended \(1\)[\s\S]*no such port"):
        services.start(tmp_path)
    services.stop()


def test_services_that_are_not_part_of_the_lab(tmp_path: Path) -> None:
    services = running(tmp_path, Pages())
    with pytest.raises(LabNotReadyError, match="the service mail is not part of this lab"):
        services.check(["mail"])


def test_programs_that_are_missing(tmp_path: Path) -> None:
    service = Pages()
    service.programs = (Program("paged", ("no-such-program",), (), "paged", "serves pages"),)
    with pytest.raises(LabNotReadyError, match="apt-get install paged"):
        running(tmp_path, service)


def test_an_unknown_service() -> None:
    with pytest.raises(InputError, match="unknown service 'absent'"):
        load_service("absent")


def test_all_services_fit_together() -> None:
    """Check that each service has its own network, which no web site uses, and that its hosts are in it."""
    networks = [site.network for site in load_sites()]
    for name in service_names():
        service = load_service(name)
        assert service.name == name
        networks.append(service.network)
        prefix = service.network.removesuffix("0/24")
        assert service.network.startswith("10.65.10"), name
        assert all(address.startswith(prefix) for address in service.hosts.values()), name
    assert len(set(networks)) == len(networks)
