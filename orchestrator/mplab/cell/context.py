"""Make the `Context` of a cell's scenario: everything that the scenario may use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from random import Random

from mplab.base.errors import StepError
from mplab.base.programs import APPIUM_DIR, NODE
from mplab.cell.attempt import Attempt
from mplab.drivers.ui import AppUi, BrowserFactory, BrowserUi
from mplab.drivers.ui.console import ConsoleLog
from mplab.drivers.ui.state import prove_clean
from mplab.scenarios.base import Context
from mplab.scenarios.base.protocol import AppFactory, Tools
from mplab.userfiles.experiments.app import AndroidApp

TLS_KEYS = "tls-keys.txt"
"""File in a cell's ``logs``: the keys of the browser's TLS connections, if captures keep payload."""
SCREENSHOTS = {"phone": "screenshots", "peer": "screenshots-peer"}
"""Node of a browser → folder in a cell for the screenshots of its failed steps. Each browser counts its own steps."""


def make_context(attempt: Attempt, scratch: Path) -> Context:
    """Return the context of a cell's scenario; `scratch` is removed after the cell."""
    lab, job = attempt.lab, attempt.job
    needs_ui = job.scenario.needs_ui
    return Context(
        phone=lab.phone,
        open_ui=open_browsers(attempt, "phone") if needs_ui else _no_ui,
        observe=attempt.observe,
        rng=Random(job.spec.seed),  # noqa: S311 - repeatable, not secret
        cell_dir=job.directory,
        scratch_dir=scratch,
        time_limit_s=min(job.use.time_limit_s, job.experiment.cell_timeout_s),
        tools=Tools(node=NODE.find() or Path(NODE.name), node_modules=APPIUM_DIR / "node_modules"),
        socks=job.transport.agent_settings().socks,
        app_proxy=lab.endpoints.app_proxy,
        open_peer_ui=open_browsers(attempt, "peer") if needs_ui else _no_ui,
        service=_declared_services(attempt),
        open_app=_open_apps(attempt),
        open_devtools=lab.open_devtools,
        android=job.app,
        open_sound=partial(lab.open_sound, job.directory / "logs" / "sound-card.log"),
    )


def open_browsers(attempt: Attempt, node: str) -> BrowserFactory:
    """Return a factory of browsers on the node ``phone`` or ``peer``.

    The factory raises StepError if a new browser has stored state (`prove_clean`).
    """
    job, screenshots = attempt.job, attempt.job.directory / SCREENSHOTS[node]
    # If captures have no payload, the keys of TLS connections decrypt nothing.
    keep = node == "phone" and job.experiment.capture == "payload"
    factory = attempt.lab.open_ui(
        screenshots,
        job.directory / "logs" / TLS_KEYS if keep else None,
        node=node,
        browser=job.scenario.browser_of(job.use.parameters),
        console=ConsoleLog(job.directory / "logs" / f"console-{node}.jsonl"),
    )

    @contextmanager
    def open_browser(*, switches: Sequence[str] = (), sound: str = "") -> Iterator[BrowserUi]:
        with factory(switches=switches, sound=sound) as ui:
            prove_clean(ui, device=node, observe=attempt.observe)
            with attempt.apps.watched(ui, screenshots):
                yield ui

    return open_browser


def _open_apps(attempt: Attempt) -> AppFactory:
    observe, screenshots = attempt.observe, attempt.job.directory / SCREENSHOTS["phone"]

    @contextmanager
    def open_app(app: AndroidApp) -> Iterator[AppUi]:
        with attempt.lab.open_app(app, observe=observe, screenshots=screenshots) as ui:
            prove_clean(ui, device="phone", observe=observe, kept=app.signed_in)
            with attempt.apps.watched(ui, screenshots):
                yield ui

    return open_app


def _declared_services(attempt: Attempt) -> Callable[[str], Mapping[str, str]]:
    def facts(name: str) -> Mapping[str, str]:
        if name not in attempt.job.scenario.services:
            raise StepError(f"the scenario does not declare the service {name}")
        return attempt.lab.services.facts(name)

    return facts


def _no_ui(*, switches: Sequence[str] = (), sound: str = "") -> AbstractContextManager[BrowserUi]:
    raise StepError("a scenario that opens a user interface must declare needs_ui")
