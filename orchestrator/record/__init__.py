"""The run directory and what is written in it."""

from orchestrator.record.events import Event, EventLog, read_events
from orchestrator.record.junit import junit_xml, write_junit
from orchestrator.record.manifest import CellRecord, Manifest, Outcome, utc_now
from orchestrator.record.progress import ProgressTracker, RunProgress
from orchestrator.record.run_directory import RunDirectory

__all__ = [
    "CellRecord",
    "Event",
    "EventLog",
    "Manifest",
    "Outcome",
    "ProgressTracker",
    "RunDirectory",
    "RunProgress",
    "junit_xml",
    "read_events",
    "utc_now",
    "write_junit",
]
