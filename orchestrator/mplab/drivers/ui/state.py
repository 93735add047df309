"""Prove that an app starts without stored state (cookies, caches, storage); read the stored state of Chromium."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from mplab.base.browser import Json
from mplab.base.errors import StepError
from mplab.drivers.ui.protocol import AppState, Ui

DevTools = Callable[[str, Mapping[str, object]], Json]
"""Function that runs a DevTools command in a browser: (method, parameters) → result."""


def prove_clean(ui: Ui, *, device: str, observe: Callable[..., object], kept: bool = False) -> None:
    """Check that a newly opened app has no stored state; record the result as observation ``app_state``.

    Args:
        ui: user interface of the app.
        device: name of the device that runs the app, for the message.
        observe: function that records an observation: ``observe("app_state", …)``.
        kept: True: a user has signed in to the app, so its state is not checked; the observation has ``kept=True``.

    Raises:
        StepError: the app has stored state.
    """
    if kept:
        observe("app_state", device=device, clean=False, kept=True)
        return
    state = ui.state()
    observe("app_state", device=device, clean=state.clean, **asdict(state))
    if not state.clean:
        raise StepError(f"{device}: the app does not begin clean: it has {state}")


def chromium_state(profile: Path, devtools: DevTools) -> AppState:
    """Return the stored state of a running Chromium.

    DevTools (domains Storage, Target) reports cookies, service workers and the storage of every origin in the profile.
    It does not report the HTTP cache, so the cache is read from the files of the profile.

    Args:
        profile: user data directory of the browser.
        devtools: function that runs a DevTools command in the browser.
    """
    default = profile / "Default"
    targets = devtools("Target.getTargets", {})["targetInfos"]
    running = sum(target["type"] == "service_worker" for target in targets)
    scripts = len(list(default.glob("Service Worker/ScriptCache/*_0")))
    origins = _quota_origins(default / "WebStorage" / "QuotaManager")
    usage = [devtools("Storage.getUsageAndQuota", {"origin": origin})["usage"] for origin in origins]
    return AppState(
        cookies=len(devtools("Storage.getCookies", {})["cookies"]),
        cached_objects=len(list(default.glob("Cache/Cache_Data/*_0"))),
        service_workers=max(running, scripts),
        storage_origins=max(len(origins), _local_storage_logs(default / "Local Storage" / "leveldb")),
        storage_bytes=round(sum(usage)),
    )


def _quota_origins(database: Path) -> list[str]:
    """Return the origins with storage in Chromium's quota database; origins not yet written to disk are missing.

    Raises:
        StepError: the database cannot be read.
    """
    if not database.exists():
        return []
    try:
        # Immutable, because the browser holds the lock.
        with closing(sqlite3.connect(f"file:{database}?immutable=1", uri=True)) as connection:
            rows = connection.execute("SELECT DISTINCT storage_key FROM buckets").fetchall()
    except sqlite3.Error as error:
        raise StepError(f"browser: {database.name} of the profile cannot be read: {error}") from error
    return [str(key).split("^")[0].rstrip("/") for (key,) in rows]


def _local_storage_logs(folder: Path) -> int:
    """Return the number of files in the local storage's database folder that contain data of a web origin."""
    logs = [*folder.glob("*.log"), *folder.glob("*.ldb")]
    return sum(b"META:http" in log.read_bytes() for log in logs)
