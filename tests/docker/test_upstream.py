"""Destinations outside the lab, on a stand-in for the Internet.

This file must be the last of its folder by name: it gives the engine's host a resolver that knows no package mirror.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from mplab.base.programs import DNSMASQ
from mplab.drivers.proxy.docker.settings import DockerProxyFile
from mplab.drivers.proxy.docker.stack import DockerStack, StackSettings
from tests.docker.conftest import SERVER_ADDRESSES
from tests.docker.engine import Engine
from tests.docker.phone import PhoneNode

pytestmark = pytest.mark.timeout(600)

OUTSIDE, RESOLVER = "192.0.2.80", "192.0.2.53"
"""Addresses of the stand-in for the Internet: a web server, and the resolver of the engine's host."""


@pytest.fixture
def outside(engine: Engine, server_stack: DockerStack, tmp_path: Path) -> Iterator[None]:
    """Give the engine's host its own resolver, and a server outside the lab at ports 80 and 81."""
    server_stack.prepare()  # while the engine can still resolve package mirrors
    with ExitStack() as stack:
        for address in (OUTSIDE, RESOLVER):
            engine.node.ip(f"addr add {address}/32 dev lo")
            stack.callback(engine.node.run, ["ip", "addr", "del", f"{address}/32", "dev", "lo"], check=False)
        (tmp_path / "resolv.conf").write_text(f"nameserver {RESOLVER}\n")
        engine.node.run(["mount", "--bind", str(tmp_path / "resolv.conf"), "/etc/resolv.conf"])
        stack.callback(engine.node.run, ["umount", "/etc/resolv.conf"], check=False)
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "index.html").write_text("outside")
        web = ["python3", "-m", "http.server", "--bind", OUTSIDE, "--directory", str(tmp_path / "site")]
        names = [str(DNSMASQ.path()), "--no-daemon", "--conf-file=", "--no-resolv", "--no-hosts", "--bind-interfaces"]
        names += [f"--listen-address={RESOLVER}", f"--host-record=shop.example,{OUTSIDE}", "--address=/#/"]
        for number, argv in enumerate(([*web, "80"], [*web, "81"], names)):
            stack.callback(engine.node.spawn(argv, log=tmp_path / f"outside-{number}.log").stop)
        yield


@pytest.mark.usefixtures("outside")
def test_phones_reach_what_the_lab_file_allows_of_the_internet(far_phone: PhoneNode, server_stack: DockerStack) -> None:
    wanted = StackSettings.of(DockerProxyFile.model_validate({"internet": {"allow": [f"{OUTSIDE}/32:80"]}}))
    opened = replace(
        server_stack.settings,
        profiles=wanted.profiles,
        internet=wanted.internet,
        upstream_names=wanted.upstream_names,
    )
    proxy = f"{SERVER_ADDRESSES[0]}:7001"
    for stack, reached in ((DockerStack(opened), True), (server_stack, False)):
        try:
            stack.up(build=False)
            _check(far_phone, stack, proxy, reached=reached)
        finally:
            stack.down()


def _check(phone: PhoneNode, stack: DockerStack, proxy: str, *, reached: bool) -> None:
    rendered = stack.last_rendered()
    assert rendered is not None
    agent = phone.start_agent(phone.agent_config(proxy, rendered.secret_file, "tcp"))
    assert phone.get("http://dl.lab/10000").stat().st_size == 10000, "the lab's own names"
    answers = [phone.curl(f"http://{host}/").exit_code for host in ("shop.example", OUTSIDE)]
    if reached:
        assert answers == [0, 0]
        assert phone.fetched.read_text() == "outside"
    else:
        assert 0 not in answers
    assert phone.curl(f"http://{OUTSIDE}:81/").exit_code != 0, "a port that no rule names"
    assert phone.curl("http://nosuch.example/").exit_code != 0
    agent.stop()
