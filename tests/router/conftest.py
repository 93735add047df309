"""The stand-in router as a fixture; tests that use it are skipped, with the reason, where it cannot run."""

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from mplab.base.errors import MplabError
from mplab.base.undo import UndoStack
from mplab.drivers.shaper.attached import AttachedShaper, Prober
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.driver import RouterFile
from mplab.drivers.shaper.openwrt.router import Router
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.protocol import PathMeasurement
from mplab.drivers.shaper.tc.machine import TcMachine
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.userfiles.labs.lab import PhoneFile
from mplab.userfiles.labs.machines import AttachedPath
from tests.router.inside import SERVER
from tests.router.measure import probe_server
from tests.router.stand_in import StandInRouter, why_not

Hold = Callable[..., AbstractContextManager[Router]]


def settings_of(router: StandInRouter, **others: object) -> RouterFile:
    """Return the router's entry in a lab file."""
    digest = hashlib.sha256(base64.b64decode(router.host_key.split()[1])).digest()
    values = {
        "host": "127.0.0.1",
        "port": router.port,
        "key": str(router.key),
        "host_key": f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}",
        "interface": "vec0",
        **others,
    }
    return RouterFile.model_validate(values)


def no_probe(_paths: object) -> dict[str, PathMeasurement]:
    return {}


def shaper_of(
    phone: str, attached: Mapping[str, object], held: Mapping[str, TcMachine], prober: Prober = no_probe
) -> AttachedShaper:
    """Return the shaper of a phone.

    Args:
        phone: its name.
        attached: its entry in a lab file.
        held: name → machine that shapes.
        prober: measures its paths.
    """
    paths = [
        (
            AttachedPath(
                phone,
                interface,
                attachment.interface or held[attachment.place(phone)].interface,
                mac=attachment.mac or "",
                ip=attachment.ip or "",
                at_phone=attachment.at is not None,
            ),
            held[attachment.place(phone)],
        )
        for interface, attachment in PhoneFile.model_validate(attached).attachments().items()
    ]
    return AttachedShaper(phone, paths, prober)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder as `router`; tests of drivers elsewhere have that mark already."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("router")


@pytest.fixture(scope="session", autouse=True)
def _own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def bare_router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInRouter]:
    """A router without the dead-man's switch; a server behind it answers probes."""
    if reason := why_not():
        pytest.skip(reason)
    with StandInRouter(tmp_path_factory.mktemp("router")) as running, probe_server(running.node("server"), SERVER):
        yield running


@pytest.fixture(scope="session")
def prepared_router(bare_router: StandInRouter) -> StandInRouter:
    """The router with the dead-man's switch installed."""
    ssh = SshConnection("router", settings_of(bare_router))
    ssh.connect()
    guard.install(ssh)
    ssh.close()
    return bare_router


_SHOW = """
/sbin/tc qdisc show; ip link show | sed 's/^[0-9]*: //' | grep -v link/ether
/bin/busybox find /etc/config /tmp/.uci -type f -exec sh -c 'echo "$1: $(cat "$1")"' sh '{}' ';' 2>/dev/null | sort
for folder in /tmp/mplab /run/mplab /data/local/tmp/mplab; do [ -e $folder ] && echo "held: $folder"; done
for device in vec0 vec2; do
	/sbin/tc filter show dev $device egress
done
cat /tmp/offloading 2>/dev/null
true
"""


def found_on(router: StandInRouter) -> list[str]:
    """Return all state of the router that mplab could have changed; after a reboot, wait until the router answers."""
    router.wait_for_ssh()
    ssh = SshConnection("router", settings_of(router))
    ssh.connect()
    try:
        return ssh.run(_SHOW).stdout.splitlines()
    finally:
        ssh.close()


@pytest.fixture
def router(prepared_router: StandInRouter) -> Iterator[StandInRouter]:
    """The router; the test fails if it leaves the router changed."""
    before = found_on(prepared_router)
    yield prepared_router
    after = found_on(prepared_router)
    assert after == before, "the router is not as it was found"


@pytest.fixture
def hold(router: StandInRouter) -> Hold:
    """Hold the router: ``with hold(dead_man="5 s") as held``; arguments override keys of the lab file's entry."""

    @contextmanager
    def held(*, interfaces: tuple[str, ...] = (), **others: object) -> Iterator[Router]:
        with UndoStack() as undo:
            settings = settings_of(router, **others)
            with Router("wifi", settings, owner=Owner(undo, "test"), interfaces=interfaces) as running:
                yield running

    return held


@pytest.fixture
def ssh(router: StandInRouter) -> Iterator[SshConnection]:
    """A shell on the router that is separate from the tested connection."""
    connection = SshConnection("router", settings_of(router))
    connection.connect()
    yield connection
    with suppress(MplabError):
        connection.close()


def lab_text(router: StandInRouter, **others: object) -> str:
    """Return the text of a lab file with this router and its two phones."""
    settings = settings_of(router)
    lines = [f"    {key}: {value}" for key, value in others.items()]
    return "\n".join(
        [
            "mplab: 1",
            "name: test",
            "routers:",
            "  wifi:",
            f"    host: {settings.host}",
            f"    port: {settings.port}",
            f"    key: {settings.key}",
            f'    host_key: "{settings.host_key}"',
            "    interface: vec0",
            *lines,
            "phones:",
            "  one:",
            "    wifi: {router: wifi, ip: 10.66.1.11}",
            "    lte: {router: wifi, interface: vec2}",
            "  two:",
            '    wifi: {router: wifi, mac: "02:66:00:00:01:12"}',
            "",
        ]
    )


@pytest.fixture
def lab_file(router: StandInRouter, tmp_path: Path) -> Path:
    """The lab file of the stand-in router."""
    file = tmp_path / "lab.yaml"
    file.write_text(lab_text(router))
    return file
