"""Prove that an app starts without stored state, and read the stored state of Chromium."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from mplab.base.errors import StepError
from mplab.drivers.ui.protocol import AppState, Json, Ui

DevTools = Callable[[str, Mapping[str, object]], Json]
"""Method and parameters of a DevTools command → its result."""


def prove_clean(ui: Ui, *, device: str, observe: Callable[..., object], kept: bool = False) -> None:
    """Check that a newly opened app has no stored state; observe the result as ``app_state``.

    Args:
        ui: the app.
        device: device that runs it, the first word of the message.
        observe: records the observation.
        kept: True when a user has signed in to the app: then nothing is checked, and the observation has ``kept``.

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
    """Return the stored state of a running Chromium: cookies, workers and storage by DevTools, the HTTP cache by files.

    DevTools (domains Storage, Target) reports the storage of every origin in the profile, but not the HTTP cache.

    Args:
        profile: the user data directory.
        devtools: runs a command.
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
    """Return origins that have storage with a quota; data that the browser has not yet written is missing.

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
    """Count the files of the local storage's database that contain data of a web origin."""
    logs = [*folder.glob("*.log"), *folder.glob("*.ldb")]
    return sum(b"META:http" in log.read_bytes() for log in logs)
