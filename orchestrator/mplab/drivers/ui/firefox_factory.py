"""Open Firefox sessions, each with a new profile that trusts the lab's authority and makes no background requests."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.base.browser.chromium import PHONE_SCREEN
from mplab.base.browser.session import SessionError
from mplab.base.errors import StepError
from mplab.base.polling import wait_until
from mplab.base.programs import FIREFOX
from mplab.drivers.ui.bidi import BidiSession
from mplab.drivers.ui.console import ConsoleLog, kept_console
from mplab.drivers.ui.firefox import FirefoxUi

_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 5.0
_POLL_S = 0.05
_LISTENING = re.compile(r"WebDriver BiDi listening on ws://127\.0\.0\.1:(\d+)")

_NOTHING = "data:,"
PREFERENCES: dict[str, bool | int | str] = {
    # Only requests of the scenario use the network.
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.aboutConfig.showWarning": False,
    "browser.chrome.site_icons": False,
    "browser.newtabpage.enabled": False,
    "browser.region.network.url": "",
    "browser.safebrowsing.blockedURIs.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "identity.fxaccounts.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "messaging-system.rsexperimentloader.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "security.OCSP.enabled": 0,
    "security.remote_settings.crlite_filters.enabled": False,
    "security.remote_settings.intermediates.enabled": False,
    "services.settings.server": _NOTHING,
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.server": _NOTHING,
    "toolkit.telemetry.unified": False,
    # No lookups and connections in advance: the page's timings then include all waiting.
    "network.dns.disablePrefetch": True,
    "network.dns.disablePrefetchFromHTTPS": True,
    "network.http.speculative-parallel-limit": 0,
    "network.predictor.enabled": False,
    "network.prefetch-next": False,
    # Use only TCP and the lab's name server.
    "network.http.http3.enable": False,
    "network.trr.mode": 5,
    "network.proxy.type": 0,
    "media.autoplay.default": 0,
    # A page that is not visible runs at full speed.
    "dom.min_background_timeout_value": 4,
}


@dataclass(frozen=True)
class FirefoxUiFactory:
    """`BrowserFactory` for Firefox on the phone.

    The control connection uses the phone's loopback: it appears in captures of ``lo``, but on no radio link.

    Attributes:
        enter: command prefix that runs the browser in the virtual phone's namespaces.
        network_pid: id of a process in the phone's network namespace.
        home: home folder with an NSS database that trusts the lab's authority (`nss_database`).
        directory: folder for profiles, which are removed with their sessions. The phone must see the same path.
        screenshots: folder for screenshot and page source of failed steps, or None.
        keys: file for the keys of the browser's TLS connections (readable only by its owner), or None.
        console: log for the messages that pages write to the console, or None.
    """

    enter: Sequence[str]
    network_pid: int
    home: Path
    directory: Path
    screenshots: Path | None = None
    keys: Path | None = None
    console: ConsoleLog | None = None

    @contextlib.contextmanager
    def __call__(self, *, switches: Sequence[str] = (), sound: str = "") -> Iterator[FirefoxUi]:
        """Yield a browser with a new profile for the duration of a context.

        Args:
            switches: additional command line arguments.
            sound: must be "", because sound cannot be recorded from Firefox.

        Raises:
            StepError: the session did not start, or `sound` is set.
            LabNotReadyError: Firefox is not installed.
        """
        if sound:
            raise StepError("browser: sound cannot be recorded from Firefox. Use Chromium")
        self.directory.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="firefox-", dir=self.directory))
        try:
            profile = write_profile(folder / "profile", self.home / ".pki" / "nssdb")
            process = self._start(folder, profile, switches)
            try:
                with self._connect(process, folder / "firefox.log") as session:
                    try:
                        ui = FirefoxUi(
                            session,
                            profile=profile,
                            alive=lambda: process.poll() is None,
                            size=PHONE_SCREEN,
                            screenshots=self.screenshots,
                        )
                    except SessionError as error:
                        raise StepError(f"browser: no session: {error}") from error
                    with kept_console(self.console, ui.console):
                        yield ui
            finally:
                _stop(process)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _start(self, folder: Path, profile: Path, switches: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.lower().endswith("_proxy") and name not in {"DISPLAY", "WAYLAND_DISPLAY", "SSLKEYLOGFILE"}
        }
        environment |= {"HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1", "MOZ_DISABLE_AUTO_SAFE_MODE": "1"}
        if self.keys is not None:
            self.keys.parent.mkdir(parents=True, exist_ok=True)
            self.keys.touch(mode=0o600)
            environment["SSLKEYLOGFILE"] = str(self.keys)
        argv = [*self.enter, str(FIREFOX.path()), "--headless", "--no-remote", "--profile", str(profile)]
        argv += ["--remote-debugging-port", "0", *switches, "about:blank"]
        with (folder / "firefox.log").open("wb") as log:
            return subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def _connect(self, process: subprocess.Popen[bytes], log: Path) -> BidiSession:
        def listening() -> re.Match[str] | None:
            match = _LISTENING.search(log.read_text(errors="replace"))
            if not match and process.poll() is not None:
                raise StepError(f"browser: Firefox has ended ({process.poll()}): {_last_line(log)}")
            return match

        if not (match := wait_until(listening, _READY_TIMEOUT_S, interval_s=_POLL_S)):
            raise StepError(f"browser: Firefox was not ready within {_READY_TIMEOUT_S:g} s: {_last_line(log)}")
        try:
            return BidiSession(int(match[1]), network_pid=self.network_pid)
        except SessionError as error:
            raise StepError(f"browser: {error}") from error


def write_profile(profile: Path, nss: Path) -> Path:
    """Make a Firefox profile with `PREFERENCES` that trusts the certificates of an NSS database; return its path.

    Args:
        profile: folder of the profile; it must not exist.
        nss: folder of the NSS database.
    """
    profile.mkdir(mode=0o700)
    for name in ("cert9.db", "key4.db", "pkcs11.txt"):
        if (nss / name).exists():
            shutil.copy(nss / name, profile / name)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines) + "\n")
    return profile


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the browser and its children: SIGTERM, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"
