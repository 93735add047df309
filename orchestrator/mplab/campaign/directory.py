"""The campaign directory: where a campaign keeps what it asked for, and what happened. Its runs are among all runs."""

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
        path: the directory itself.
    """

    path: Path

    @classmethod
    def create(
        cls, root: Path, source: bytes, record: CampaignRecord, planned: Iterable[CampaignEvent]
    ) -> "CampaignDirectory":
        """Make the directory that `record` names in `root`, with the campaign file in it, byte for byte.

        Args:
            root: folder of campaigns.
            source: the campaign file.
            record: ``campaign.json``, which is written last: without it, there is no campaign.
            planned: the first events.

        Raises:
            MplabError: it cannot be made ("disk full: …").
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
        """An existing one. Raises InputError when `path` is none, or of another format."""
        directory = cls(path)
        if not directory.manifest_file.is_file():
            found = "no campaign.json in it" if path.is_dir() else "no such directory"
            raise InputError(f"{path}: not a campaign directory: {found}")
        directory.read_record()
        return directory

    @property
    def id(self) -> str:
        """Its name."""
        return self.path.resolve().name

    @property
    def lock_name(self) -> str:
        """What a process that runs this campaign locks (`mplab.base.lock`)."""
        return f"campaign-{self.id}"

    @property
    def campaign_file(self) -> Path:
        """The campaign as asked."""
        return self.path / "campaign.yaml"

    @property
    def manifest_file(self) -> Path:
        """Where it was asked, and by what it is run."""
        return self.path / "campaign.json"

    @property
    def events_file(self) -> Path:
        """What happened."""
        return self.path / "events.jsonl"

    @property
    def logs(self) -> Path:
        """What the runs said, a file for each try."""
        return self.path / "logs"

    @property
    def page(self) -> Path:
        """How far it is, for people."""
        return self.path / "report" / "index.html"

    @property
    def junit_file(self) -> Path:
        """The jobs as continuous integration reads them."""
        return self.path / "junit.xml"

    def read_record(self) -> CampaignRecord:
        """What ``campaign.json`` says. Raises InputError."""
        return read_record(self.manifest_file, CampaignRecord)

    def read_file(self) -> CampaignFile:
        """What was asked. Raises InputError."""
        return read_campaign_file(self.campaign_file)[0]

    @property
    def runs(self) -> Path:
        """Folder of its runs, and of others. Raises InputError."""
        return Path(self.read_record().runs)

    @property
    def asked_in(self) -> Path:
        """Folder of the campaign file, which other files in it are relative to. Raises InputError."""
        return Path(self.read_record().file).parent

    def read_state(self) -> CampaignState:
        """How far it is. Raises InputError."""
        return state_of(read_events(self.events_file, CampaignEvent))


def quarantined_before(campaigns: Path, resources: Iterable[str]) -> dict[str, str]:
    """Of some resources those that the newest campaign with them has left in quarantine, and why.

    Raises:
        InputError: the events of a campaign are damaged.
    """
    asked, found = set(resources), {}
    for manifest in sorted(campaigns.glob("*/campaign.json"), reverse=True):
        if not asked:
            break
        directory = CampaignDirectory(manifest.parent)
        for status in directory.read_state().resources if directory.events_file.is_file() else ():
            if status.name in asked:
                asked.remove(status.name)
                if status.quarantined:
                    found[status.name] = status.reason
    return found
