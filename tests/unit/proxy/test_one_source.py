"""Images and the virtual lab's processes use one configuration; these tests fail when two copies diverge."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mplab.base.endpoints import PORTS as LISTENERS
from mplab.base.endpoints import PROBE_PORT
from mplab.base.installed import LOCAL, Installed
from mplab.base.places import ROOT
from mplab.base.programs import MPFLEX, SERVICES_DIR, Program
from mplab.drivers.origin.origin import Origin
from mplab.drivers.proxy.docker.compose import FILE, default_settings, one_for_each_image, profiles
from mplab.drivers.proxy.docker.layout import CODE, PRIVATE, InImages, place_of_content, volume_folders
from mplab.drivers.proxy.docker.render import CONTROL, PORTS, Nowhere
from mplab.drivers.proxy.docker.settings import PROFILES
from mplab.drivers.services import RunningServices, load_service, service_names

COMPOSE: Mapping[str, Any] = YAML(typ="safe").load(FILE)
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]
PROGRAM_OF = {"web": "nginx", "dns": "dnsmasq", "echo": "udp-echo", "iperf": "iperf3", "xmpp": "prosody"}
"""Service of the compose file → program of the virtual lab, where names differ."""
WITH_CAPABILITIES = {"proxy-net", "shadowsocks-net", "origin-net", "capture-proxy"}
OF_DOCKER_ALONE = WITH_CAPABILITIES | {"proxy", "probe", "names", "shadowsocks", "collector"}
IMAGES = FILE.parent / "images"


class Named:
    """`Installed` with this machine's paths, but with programs by name: none must be installed."""

    path = staticmethod(LOCAL.path)
    python = staticmethod(LOCAL.python)

    def program(self, program: Program) -> str:
        return program.name

    def version(self, program: Program) -> str:
        return "1.22.1"

    def unprivileged(self) -> tuple[str, ...]:
        return ("unprivileged",)


@dataclass
class Lab:
    """Configurations for one kind of place."""

    directory: Path
    commands: Mapping[str, list[str]]

    def files(self) -> Iterator[Path]:
        for path in sorted(self.directory.rglob("*")):
            if path.is_file() and path.suffix != ".pem" and "data" not in path.parts:
                yield path.relative_to(self.directory)


def make_lab(directory: Path, installed: Installed, patch: pytest.MonkeyPatch) -> Lab:
    """Return the configurations; secrets are the same each time."""
    count = iter(range(1000))
    patch.setattr("secrets.token_hex", lambda size=32: f"secret-{next(count)}-{size}")
    patch.setattr("secrets.token_urlsafe", lambda size=32: f"secret-{next(count)}-{size}")
    services = RunningServices(
        [load_service(name) for name in service_names()],
        directory=directory / "services",
        host=Nowhere(),
        installed=installed,
    )
    origin = Origin(directory / "origin", additions=services, installed=installed)
    origin.prepare()
    return Lab(directory, {**origin.commands(), **services.commands()})


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, Lab, InImages]:
    missing = [program for program in ("ffmpeg", "espeak-ng") if not _is_there(program)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    virtual, images = tmp_path_factory.mktemp("virtual"), tmp_path_factory.mktemp("images")
    installed = InImages(images)
    with pytest.MonkeyPatch.context() as patch:
        return make_lab(virtual, Named(), patch), make_lab(images, installed, patch), installed


def _is_there(name: str) -> bool:
    return Program(name, (name,), (), name, "").find() is not None


def test_configurations_differ_in_paths_alone(labs: tuple[Lab, Lab, InImages]) -> None:
    virtual, images, installed = labs
    names = list(virtual.files())
    assert names == list(images.files())
    assert {"nginx.conf", "dnsmasq.conf", "icecast.xml", "turnserver.conf", "prosody.cfg.lua"} <= {
        p.name for p in names
    }
    for name in names:
        here = (virtual.directory / name).read_text()
        there = (images.directory / name).read_text()
        translated = _translate(here, virtual.directory, images.directory, installed)
        assert translated == there, name


def _translate(text: str, virtual: Path, images: Path, installed: InImages) -> str:
    """Replace every path of this machine by its path in containers."""

    def seen(match: re.Match[str]) -> str:
        path = Path(match.group())
        if path.is_relative_to(virtual):
            path = images / path.relative_to(virtual)
        return installed.path(path)

    ours = "|".join(re.escape(str(root)) for root in (virtual, ROOT))
    return re.sub(rf"(?:{ours})[\w./@%-]*[\w@%-]", seen, text)


def test_compose_runs_what_the_virtual_lab_runs(labs: tuple[Lab, Lab, InImages]) -> None:
    _, images, _ = labs
    commands = {
        PROGRAM_OF.get(name, name): service["command"] for name, service in SERVICES.items() if "command" in service
    }
    own = {name: command for name, command in commands.items() if name not in OF_DOCKER_ALONE}
    wanted = {name: [part for part in argv if part != f"/{MPFLEX.name}"] for name, argv in images.commands.items()}
    assert own == wanted


def test_what_configurations_name_is_in_volumes_or_images(labs: tuple[Lab, Lab, InImages]) -> None:
    _, images, installed = labs
    copied = [
        line.split()[1:]
        for file in IMAGES.glob("*/Dockerfile")
        for line in file.read_text().splitlines()
        if line.startswith("COPY")
    ]
    of_images = {target.rstrip("/") if "www" in target else f"{target}{Path(source).name}" for source, target in copied}
    text = "\n".join((images.directory / name).read_text() for name in images.files())
    text += "\n".join(" ".join(argv) for argv in images.commands.values())
    for path in set(re.findall(rf"{CODE}/[\w./-]+", text)):
        assert any(path == known or path.startswith(f"{known}/") for known in of_images), path
        assert (SERVICES_DIR / path.removeprefix(f"{CODE}/").removesuffix("/$host")).exists(), path
    for path in set(re.findall(rf"{PRIVATE}/[\w-]+", text)):
        assert path.removeprefix(f"{PRIVATE}/") in volume_folders(Path()), path
    assert all(path.exists() for path in installed.content)
    assert len({place_of_content(path) for path in installed.content}) == len(installed.content)


def test_profiles_of_the_lab_file_are_those_of_the_compose_file() -> None:
    assert sorted(PROFILES) == sorted(profiles())


def test_every_image_is_built_once() -> None:
    chosen = one_for_each_image(profiles())
    images = [SERVICES[name]["image"] for name in chosen]
    assert len(set(images)) == len(images)
    assert set(images) == {service["image"] for service in SERVICES.values()}
    builds: dict[str, set[str]] = {}
    for service in SERVICES.values():
        builds.setdefault(service["image"], set()).add(json.dumps(service["build"]))
    assert {image for image, ways in builds.items() if len(ways) > 1} == set()
    assert one_for_each_image(["dns"]) == ["origin-net", "dns"]


def test_containers_are_hardened() -> None:
    for name, service in SERVICES.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["init"] is True, name
        assert service["restart"] == "unless-stopped", name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        assert "healthcheck" in service, name
        assert "privileged" not in service, name
    assert {name for name, service in SERVICES.items() if "cap_add" in service} == WITH_CAPABILITIES


def test_ports_are_those_that_the_proxy_listens_at_on_loopback() -> None:
    published = SERVICES["proxy-net"]["ports"]
    there = {*map(str, PORTS.values()), str(LISTENERS["mpflex_plain"]), f"{PROBE_PORT}/udp"}
    assert {port.rpartition(":")[2] for port in published} == there
    assert SERVICES["probe"]["command"] == ["probe-server", "--listen", f"0.0.0.0:{PROBE_PORT}"]
    defaults = {re.sub(r"\$\{\w+:-([^}]*)\}.*", r"\1", port) for port in published}
    assert defaults == {"127.0.0.1", "127.0.0.2"}
    assert CONTROL in SERVICES["proxy"]["healthcheck"]["test"]


def test_defaults_stand_in_both_files_alike() -> None:
    settings = default_settings()
    for name, default in re.findall(r"\$\{(\w+):-([^}]*)\}", FILE.read_text()):
        if name not in {"MPLAB_TAG", "MPLAB_CONFIG"}:
            assert settings[name] == default, name


def test_images_pin_the_versions_of_what_they_install() -> None:
    for file in IMAGES.glob("*/Dockerfile"):
        for install in re.findall(r"--no-install-recommends (.*?) \\", file.read_text()):
            assert all(re.fullmatch(r"[\w.+-]+='[\d:.]+[-.]?\*'", package) for package in install.split()), file
