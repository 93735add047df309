"""Read and write a campaign's directory: campaign file, plan, events. The campaign's runs are in other directories."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import InputError
from mplab.base.files import explained, write_new
from mplab.campaign.file import read_campaign_file
from mplab.campaign.state import state_of
from mplab.format.campaign import CampaignRecord, CampaignState
from mplab.format.campaignevents import CampaignEvent
from mplab.format.campaignfile import CampaignFile
from mplab.format.events import EventLog, read_events
from mplab.format.record import read_record, write_record


@dataclass(frozen=True)
class CampaignDirectory:
    """One campaign's directory: ``campaign.yaml``, ``campaign.json``, ``events.jsonl``, ``logs/``, ``report/``.

    Attributes:
        path: path of the directory.
    """

    path: Path

    @classmethod
    def create(
        cls, root: Path, source: bytes, record: CampaignRecord, planned: Iterable[CampaignEvent]
    ) -> "CampaignDirectory":
        """Create the directory of a campaign in `root`, with the name in `record`, and return it.

        Args:
            root: folder of the campaigns' directories.
            source: content of the campaign file, which is copied unchanged.
            record: ``campaign.json``. It is written last: a directory without it is not a campaign.
            planned: the campaign's first events.

        Raises:
            MplabError: the directory cannot be created ("disk full: …").
        """
        directory = cls(root / record.campaign)
        with explained(directory.path):
            for folder in (directory.path, directory.logs, directory.page.parent):
                folder.mkdir(mode=0o755, parents=True)
            Path(record.runs).mkdir(mode=0o755, parents=True, exist_ok=True)
        write_new(directory.campaign_file, source)
        with EventLog(directory.events_file) as events:
            for event in planned:
                events.append(event)
        write_record(directory.manifest_file, record)
        return directory

    @classmethod
    def open(cls, path: Path) -> "CampaignDirectory":
        """Return the existing campaign directory `path`. Raises InputError if it has another format or is missing."""
        directory = cls(path)
        if not directory.manifest_file.is_file():
            problem = "no campaign.json in it" if path.is_dir() else "no such directory"
            raise InputError(f"{path}: not a campaign directory: {problem}")
        directory.read_record()
        return directory

    @property
    def id(self) -> str:
        """Return the campaign's id: the name of its directory."""
        return self.path.resolve().name

    @property
    def lock_name(self) -> str:
        """Return the name of the lock (`mplab.base.lock`) that is held by the process that runs this campaign."""
        return f"campaign-{self.id}"

    @property
    def campaign_file(self) -> Path:
        """Return the path of the directory's unchanged copy of the campaign file."""
        return self.path / "campaign.yaml"

    @property
    def manifest_file(self) -> Path:
        """Return the path of ``campaign.json``, which has the original path of the campaign file, host and versions."""
        return self.path / "campaign.json"

    @property
    def events_file(self) -> Path:
        """Return the path of the event log."""
        return self.path / "events.jsonl"

    @property
    def logs(self) -> Path:
        """Return the folder with the output of the runs, one file for each try."""
        return self.path / "logs"

    @property
    def page(self) -> Path:
        """Return the path of the status page."""
        return self.path / "report" / "index.html"

    @property
    def junit_file(self) -> Path:
        """Return the path of ``junit.xml``: outcomes of the jobs, for continuous integration."""
        return self.path / "junit.xml"

    def read_record(self) -> CampaignRecord:
        """Read ``campaign.json``. Raises InputError: it is missing or wrong."""
        return read_record(self.manifest_file, CampaignRecord)

    def read_file(self) -> CampaignFile:
        """Read the campaign file. Raises InputError: it is missing or wrong."""
        return read_campaign_file(self.campaign_file)[0]

    @property
    def runs(self) -> Path:
        """Return the folder with the campaign's run directories; it can contain other runs, too. Raises InputError."""
        return Path(self.read_record().runs)

    @property
    def asked_in(self) -> Path:
        """Return the folder of the original campaign file, to which its relative paths refer. Raises InputError."""
        return Path(self.read_record().file).parent

    def read_state(self) -> CampaignState:
        """Compute the state of the campaign from its events. Raises InputError: the events are damaged."""
        return state_of(read_events(self.events_file, CampaignEvent))


def quarantined_before(campaigns: Path, resources: Iterable[str]) -> dict[str, str]:
    """Return resource → reason of its quarantine, for each resource that is quarantined in its newest campaign.

    The newest campaign of a resource is the last one in the folder `campaigns` that uses the resource.

    Raises:
        InputError: the events of a campaign are damaged.
    """
    wanted, quarantined = set(resources), {}
    for manifest in sorted(campaigns.glob("*/campaign.json"), reverse=True):
        if not wanted:
            break
        directory = CampaignDirectory(manifest.parent)
        for status in directory.read_state().resources if directory.events_file.is_file() else ():
            if status.name in wanted:
                wanted.remove(status.name)
                if status.quarantined:
                    quarantined[status.name] = status.reason
    return quarantined
