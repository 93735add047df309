"""Events of a campaign in the middle of its night."""

from typing import Any

from mplab.campaign.state import state_of
from mplab.format.campaign import CampaignState
from mplab.format.campaignevents import CampaignEvent

T0 = 1_700_000_000.0


def job(number: int, name: str, *resources: str, cells: int = 12, estimate_s: float = 1200.0) -> dict[str, Any]:
    return {
        "id": f"{number:02}-{name}",
        "experiment": name,
        "title": f"The {name} <experiment> & more",
        "file": f"/lab/{name}.yaml",
        "sha256": "0" * 64,
        "lab": "",
        "phone": "",
        "resources": list(resources),
        "cells": cells,
        "blocks": 1,
        "estimate_s": estimate_s,
    }


def run_name(name: str) -> str:
    return f"20231114T221320Z-{name}-abcdef"


def cells(total: int, ok: int, invalid: int = 0, failed: int = 0, left_out: int = 0) -> dict[str, int]:
    return {"total": total, "ok": ok, "invalid": invalid, "failed": failed, "left_out": left_out}


def events() -> list[CampaignEvent]:
    """Return the events: two jobs done, one failed, one running, two waiting; one phone rests, one is in quarantine."""
    jobs = [
        job(1, "apps", "phone-1"),
        job(2, "web", "phone-2", "router-a", cells=60),
        job(3, "calls", "phone-3", cells=8),
        job(4, "video", "phone-1", "router-a", cells=20, estimate_s=2400.0),
        job(5, "backup", "phone-2", cells=30),
        job(6, "far", "phone-4", cells=10, estimate_s=99999.0),
    ]
    rows: list[tuple[float, str, dict[str, Any]]] = [
        (0, "campaign_planned", {"name": "nightly", "title": "The night's <b>work</b>", "jobs": jobs}),
        (1, "campaign_started", {"ends_by": T0 + 6 * 3600}),
        (2, "job_started", {"job": "01-apps", "try": 1, "run": run_name("apps")}),
        (3, "job_started", {"job": "02-web", "try": 1, "run": run_name("web")}),
        (4, "job_started", {"job": "03-calls", "try": 1, "run": run_name("calls")}),
        (900, "job_ended", {"job": "01-apps", "code": 0, "reason": "", "cells": cells(12, 12)}),
        (900, "resource_used", {"resources": ["phone-1"], "good": True}),
        (901, "job_finished", {"job": "01-apps", "state": "done", "reason": ""}),
        (950, "job_compared", {"job": "01-apps", "text": "no metric is worse than in 9 nights", "passed": True}),
        (1000, "job_ended", {"job": "03-calls", "code": 1, "reason": "phone-3: no answer", "cells": cells(8, 2, 1, 3)}),
        (1001, "resource_used", {"resources": ["phone-3"], "good": False}),
        (1002, "resource_quarantined", {"resource": "phone-3", "reason": "battery at 4 %, does not charge"}),
        (1003, "job_finished", {"job": "03-calls", "state": "failed", "reason": "phone-3: no answer <again>"}),
        (2000, "job_ended", {"job": "02-web", "code": 1, "reason": "", "cells": cells(60, 55, 3, 2)}),
        (2001, "job_finished", {"job": "02-web", "state": "done", "reason": ""}),
        (2002, "job_compared", {"job": "02-web", "text": "page_load_time of mptcp: +31 % [12, 50]", "passed": False}),
        (2003, "resource_rests", {"resource": "phone-2", "reason": "43 °C", "until": T0 + 4000}),
        (2005, "job_started", {"job": "04-video", "try": 1, "run": run_name("video")}),
    ]
    return [CampaignEvent.parse({"t": T0 + t, "event": name, **fields}) for t, name, fields in rows]


def night_state() -> CampaignState:
    return state_of(events())
