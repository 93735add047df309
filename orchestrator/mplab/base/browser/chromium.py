"""Start Chromium in a phone: a wrapper script that enters the phone's namespaces, command line switches, trusted CAs.

The switches suppress the browser's background traffic.
"""

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import LabNotReadyError
from mplab.base.programs import CERTUTIL, CHROMIUM

PHONE_SCREEN = (412, 915)
PREFERENCES = {
    # Start with an empty page: the default page loads its own content.
    "session": {"restore_on_startup": 4, "startup_urls": ["data:,"]},
    # No lookups and connections in advance: the page's timings then include all waiting.
    "net": {"network_prediction_options": 2},
}

_SWITCHES = (
    "--headless=new",
    "--disable-quic",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--password-store=basic",
    "--dns-over-https-mode=off",
    # Only requests of the scenario use the network.
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    # A page in clear text stays in clear text (HttpsUpgrades).
    "--disable-features=AutofillServerCommunication,CertificateTransparencyComponentUpdater,HttpsUpgrades,"
    "InterestFeedContentSuggestions,MediaRouter,OptimizationHints,Prerender2,Translate",
    # A page that is not visible runs at full speed.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)


BY_PIPE = "--remote-debugging-pipe"
"""Switch that lets only the process that starts the browser drive it, over file descriptors 3 and 4."""
BY_PORT = "--remote-debugging-port=0"
"""Switch that lets the browser choose a free loopback port and write it to `PORT_FILE` in its profile folder."""
PORT_FILE = "DevToolsActivePort"
_CERTUTIL_TIMEOUT_S = 30.0


def switches(profile: Path, *, muted: bool = True, driven: str = BY_PIPE) -> list[str]:
    """Return the command line switches of a browser.

    Args:
        profile: user data directory.
        muted: True: play no sound.
        driven: `BY_PIPE` or `BY_PORT`: how the DevTools protocol reaches the browser.
    """
    width, height = PHONE_SCREEN
    own = [driven, *_own(profile), f"--window-size={width},{height}"]
    # Any tap may start sound, as in an app.
    sound = ["--mute-audio"] if muted else ["--autoplay-policy=no-user-gesture-required"]
    return [*_SWITCHES, *own, *sound]


def own_switches(profile: Path) -> list[str]:
    """Return the command line switches of a browser outside of a phone that shows mplab's own pages."""
    return [*_SWITCHES, *_own(profile), BY_PIPE]


def _own(profile: Path) -> list[str]:
    # Chromium's own sandbox does not work for uid 0; the lab's namespaces isolate it, or the page is mplab's own.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    return [f"--user-data-dir={profile}", *sandbox]


@dataclass(frozen=True)
class Wrapper:
    """Script that ChromeDriver starts in place of the browser; the script executes the browser inside the phone.

    Attributes:
        path: file of the script.
        pid_file: file to which the script writes its process id. The browser has the same id, because the script
            replaces itself by the browser.
    """

    path: Path
    pid_file: Path

    @classmethod
    def write(
        cls, directory: Path, *, enter: Sequence[str], home: Path, keys: Path | None = None, sound: str = ""
    ) -> "Wrapper":
        """Write the script into `directory`.

        Args:
            directory: folder that gets the script.
            enter: command prefix that runs the browser in the phone, e.g. ``nsenter --target 7 --net --mount --``.
            home: the browser's HOME, with the certificate database.
            keys: file to which the browser appends the keys of its TLS connections, or None.
            sound: address of the sound server to play to; "": none.
        """
        wrapper = cls(directory / "chromium", directory / "chromium.pid")
        command = shlex.join([*enter, str(CHROMIUM.path())])
        lines = [
            "#!/bin/sh",
            # Appium asks before every session; a full start of the browser only for its version would be slow.
            f'[ "$1" = --version ] && echo {shlex.quote(f"Chromium {CHROMIUM.version()}")} && exit',
            f"echo $$ > {shlex.quote(str(wrapper.pid_file))}",
            f"export HOME={shlex.quote(str(home))}",
            "unset DISPLAY WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME",
            f"export SSLKEYLOGFILE={shlex.quote(str(keys))}" if keys else "unset SSLKEYLOGFILE",
            f"export PULSE_SERVER={shlex.quote(sound)}" if sound else "unset PULSE_SERVER",
            "unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY",
            f'exec {command} "$@"',
        ]
        wrapper.path.write_text("\n".join(lines) + "\n")
        wrapper.path.chmod(0o700)
        return wrapper

    def browser_pid(self) -> int | None:
        """Return the process id of the running browser, or None when it does not run."""
        try:
            pid = int(self.pid_file.read_text())
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError, IndexError):
            return None
        return None if state in "ZX" else pid


def nss_database(directory: Path, ca_pem: Path) -> Path:
    """Make an NSS database in `directory` that trusts `ca_pem` as authority for servers; return `directory`.

    Chromium uses the database in ``$HOME/.pki/nssdb``.

    Raises:
        LabNotReadyError: certutil is missing or failed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    database = f"sql:{directory}"
    _certutil("-N", "-d", database, "--empty-password")
    _certutil("-A", "-d", database, "-n", "mplab lab authority", "-t", "C,,", "-i", str(ca_pem))
    return directory


def _certutil(*arguments: str) -> None:
    argv = [str(CERTUTIL.path()), *arguments]
    result = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_CERTUTIL_TIMEOUT_S, check=False
    )
    if result.returncode != 0:
        raise LabNotReadyError(f"certutil: {' '.join(argv)} failed ({result.returncode}): {result.stderr.strip()}")
