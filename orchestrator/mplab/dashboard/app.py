"""The dashboard as an ASGI application: pages, files of runs, events, metrics. It only reads."""

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from datetime import date
from functools import partial
from typing import BinaryIO
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from mplab.analysis.report.places import comparison_name
from mplab.campaign.night import trend_name
from mplab.dashboard import render
from mplab.dashboard.access import PAGE_POLICY, RUN_FILE_POLICY, SCRIPTED_POLICY, Access, Guard
from mplab.dashboard.cells import finished_cells, has_comparison, log_names
from mplab.dashboard.days import newest_per_experiment
from mplab.dashboard.files import content_type, is_listed, names_below, open_below, read_below
from mplab.dashboard.live import Live, progress_of
from mplab.dashboard.openmetrics import CONTENT_TYPE_LATEST, exposition
from mplab.dashboard.search import MOST_LENGTH, search
from mplab.dashboard.trends import Trends
from mplab.dashboard.watch import Snapshot, Watcher
from mplab.format.record import json_of

_STATIC = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_FILES = "/files/"
_CHUNK = 1 << 16
_KEPT_PAGES = 32
_PAGE_AGE_S = 10.0
"""A page is made again after this time, because it shows elapsed time."""
_MOST_PAGES = 10_000
_COMPARISON_BYTES = 16 << 20
"""Limit for the size of a page of `mplab compare`."""
_LOG_BYTES = 1 << 20
"""Part of a campaign's log that is shown: its end."""


class Dashboard:
    """The pages of one server.

    Args:
        watcher: reads the folders.
        access: rules of access.
    """

    def __init__(self, watcher: Watcher, access: Access) -> None:
        self._watcher = watcher
        self._access = access
        self._trends = Trends()
        self._pages: OrderedDict[str, tuple[int, float, str]] = OrderedDict()
        self.live = Live(watcher)

    def application(self) -> ASGIApp:
        """Return the ASGI application."""
        routes: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self._overview,
            "/runs": self._runs,
            "/runs/{run}": self._run,
            "/runs/{run}/{path:path}": self._to_run_file,
            _FILES + "{key}/{run}/{path:path}": self._run_file,
            "/campaigns/{campaign}": self._campaign,
            "/campaigns/{campaign}/logs/{log}": self._campaign_log,
            "/days/{day}": self._day,
            "/search": self._search,
            "/events": self._events,
            "/status.json": self._status,
            "/metrics": self._metrics,
            "/grafana.json": self._grafana,
            "/static/{name}": self._static,
        }
        app = Starlette(routes=[Route(path, answer) for path, answer in routes.items()])
        app.router.redirect_slashes = False
        return Guard(app, self._access, (_FILES,))

    async def _overview(self, request: Request) -> Response:
        return await self._html(request, render.overview)

    async def _runs(self, request: Request) -> Response:
        text = request.query_params.get("page", "1")
        page = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if not 1 <= page <= _MOST_PAGES:
            raise HTTPException(404)
        return await self._html(request, partial(render.runs_page, page=page))

    async def _run(self, request: Request) -> Response:
        name = request.path_params["run"]
        snapshot = await self._snapshot()
        for experiment in newest_per_experiment(snapshot.runs):
            if name == trend_name(experiment):
                return await self._trend(experiment, snapshot)
        if snapshot.run(name) is None:
            return await self._comparison(name, snapshot)

        def page(snapshot: Snapshot) -> str:
            run = snapshot.run(name)
            if run is None:
                raise HTTPException(404)
            cells = finished_cells(run.folder, run.name)
            compared = comparison_name(run.name) if has_comparison(run.folder, run.name) else ""
            return render.run_page(snapshot, run, cells, log_names(run.folder, run.name), compared=compared)

        return await self._html(request, page)

    async def _comparison(self, file: str, snapshot: Snapshot) -> Response:
        """Answer with the page of `mplab compare` for a run, which lies next to the run directory."""
        run = next((run for run in snapshot.runs if comparison_name(run.name) == file), None)
        if run is None:
            raise HTTPException(404)
        try:
            text = await asyncio.to_thread(read_below, run.folder, [file], _COMPARISON_BYTES)
        except (FileNotFoundError, ValueError):
            raise HTTPException(404) from None
        return HTMLResponse(text, headers={"Content-Security-Policy": SCRIPTED_POLICY})

    async def _trend(self, experiment: str, snapshot: Snapshot) -> Response:
        text = await asyncio.to_thread(self._trends.page, experiment, snapshot.runs)
        if not text:
            raise HTTPException(404, "fewer than two runs with a report have the same metric")
        return HTMLResponse(text, headers={"Content-Security-Policy": SCRIPTED_POLICY})

    async def _to_run_file(self, request: Request) -> Response:
        """Redirect to the file with the run's secret part of the URL, which pages of runs need for further files."""
        run, path = request.path_params["run"], request.path_params["path"]
        if path in {"report", "report/"}:
            path = "report/index.html"
        snapshot = await self._snapshot()
        parts = path.split("/")
        if snapshot.run(run) is None or not (content_type(parts) or is_listed(parts)):
            raise HTTPException(404)
        return RedirectResponse(f"{_FILES}{self._access.run_key(run)}/{quote(run)}/{quote(path)}", 302)

    async def _run_file(self, request: Request) -> Response:
        run, key, parts = request.path_params["run"], request.path_params["key"], request.path_params["path"].split("/")
        if not self._access.is_run_key(run, key):
            raise HTTPException(404)
        entry = (await self._snapshot()).run(run)
        kind = content_type(parts)
        if entry is None or not (kind or is_listed(parts)):
            raise HTTPException(404)
        headers = {
            "Content-Security-Policy": RUN_FILE_POLICY,
            "Cross-Origin-Resource-Policy": "cross-origin",  # a page of a run has a separate origin
        }
        if kind == "application/octet-stream":
            headers["Content-Disposition"] = "attachment"
        try:
            if not kind:
                names = await asyncio.to_thread(names_below, entry.folder, [run, *parts[:-1]])
                return HTMLResponse(render.names_page("/".join(parts), names), headers=headers)
            file = await asyncio.to_thread(open_below, entry.folder, [run, *parts])
        except FileNotFoundError:
            raise HTTPException(404) from None
        return _file_answer(request, file, kind, headers)

    async def _campaign(self, request: Request) -> Response:
        name = request.path_params["campaign"]
        if (await self._snapshot()).campaign(name) is None:
            raise HTTPException(404)

        def page(snapshot: Snapshot) -> str:
            campaign = snapshot.campaign(name)
            if campaign is None or campaign.night is None:
                raise HTTPException(404, campaign.problem if campaign is not None else None)
            return render.campaign_page(snapshot, campaign)

        return await self._html(request, page)

    async def _campaign_log(self, request: Request) -> Response:
        name, log = request.path_params["campaign"], request.path_params["log"]
        campaign = (await self._snapshot()).campaign(name)
        if campaign is None or log not in campaign.logs:
            raise HTTPException(404)

        def end() -> bytes:
            with open_below(campaign.path, ["logs", log]) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - _LOG_BYTES))
                return file.read(_LOG_BYTES)

        try:
            return Response(await asyncio.to_thread(end), media_type="text/plain; charset=utf-8")
        except FileNotFoundError:
            raise HTTPException(404) from None

    async def _day(self, request: Request) -> Response:
        try:
            when = date.fromisoformat(request.path_params["day"])
        except ValueError:
            raise HTTPException(404) from None
        return await self._html(request, partial(render.day_page, when=when))

    async def _search(self, request: Request) -> Response:
        query = request.query_params.get("q", "").strip()[:MOST_LENGTH]
        return await self._html(
            request, lambda snapshot: render.search_page(snapshot, query, search(snapshot.runs, query))
        )

    async def _events(self, request: Request) -> Response:
        kind = "text/event-stream"
        if request.method == "HEAD":
            return Response(media_type=kind)
        if self.live.full:
            return Response("too many viewers\n", 503, {"Retry-After": "30"}, "text/plain")
        return StreamingResponse(self.live.stream(), media_type=kind)

    async def _status(self, request: Request) -> Response:
        del request
        return JSONResponse(status_of(await self._snapshot()))

    async def _metrics(self, request: Request) -> Response:
        del request
        text = await asyncio.to_thread(exposition, await self._snapshot())
        return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _grafana(self, request: Request) -> Response:
        del request
        content = await asyncio.to_thread((render.HERE / "grafana.json").read_bytes)
        return Response(content, media_type="application/json")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        content = await asyncio.to_thread(read_below, render.HERE, ["static", name], 1 << 20)
        return Response(content, headers={"Content-Type": _STATIC[name]})

    async def _snapshot(self) -> Snapshot:
        return await asyncio.to_thread(self._watcher.snapshot)

    async def _html(self, request: Request, make: Callable[[Snapshot], str]) -> Response:
        """Answer with a page of the dashboard; pages are kept until the folders change."""
        key = f"{request.url.path}?{request.url.query}"
        snapshot = await self._snapshot()
        version, made, text = self._pages.get(key, (-1, 0.0, ""))
        if version != snapshot.version or time.monotonic() - made > _PAGE_AGE_S:
            text = await asyncio.to_thread(make, snapshot)
            self._pages[key] = (snapshot.version, time.monotonic(), text)
            self._pages.move_to_end(key)
            while len(self._pages) > _KEPT_PAGES:
                self._pages.popitem(last=False)
        content = text.encode(errors="replace")
        return HTMLResponse(content, headers={"Content-Security-Policy": PAGE_POLICY})


def status_of(snapshot: Snapshot) -> dict[str, object]:
    """Return a snapshot as JSON data, for programs."""
    return {
        **progress_of(snapshot),
        "now": round(snapshot.now, 3),
        "runs": [
            {
                "run": run.name,
                "experiment": run.experiment,
                "state": run.state,
                "started": run.started,
                "ended": run.ended,
                "cells": json_of(run.cells),
                "report": run.has_report,
                "problem": run.problem,
            }
            for run in snapshot.runs
        ],
        "campaigns": [
            {
                "campaign": campaign.name,
                "problem": campaign.problem,
                **({} if campaign.night is None else campaign.night.to_json()),
            }
            for campaign in snapshot.campaigns
        ],
        "resources": [
            {**json_of(resource.status), "campaign": resource.campaign, "live": resource.live}
            for resource in snapshot.resources
        ],
    }


def _file_answer(request: Request, file: BinaryIO, kind: str, headers: dict[str, str]) -> Response:
    """Answer with an open file, up to its current size, and close it."""
    size = os.fstat(file.fileno()).st_size
    headers = {**headers, "Content-Type": kind, "Content-Length": str(size)}
    if request.method == "HEAD":
        file.close()
        return Response(headers=headers)
    return StreamingResponse(_chunks(file, size), headers=headers)


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    with contextlib.closing(file):
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            yield chunk
            size -= len(chunk)
