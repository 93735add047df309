"""Write ``ro-crate-metadata.json``, which describes a bundle to programs that do not know mplab (RO-Crate 1.1)."""

import json
import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from mplab.analysis.bundle.contents import ANONYMISED, CRATE
from mplab.analysis.files import Json
from mplab.analysis.record.run import Run
from mplab.analysis.text import listed, plural
from mplab.format.manifest import Manifest

SPECIFICATION = "https://w3id.org/ro/crate/1.1"
_CONTEXT = [f"{SPECIFICATION}/context", {"sha256": "https://schema.org/sha256"}]
_ROOT, _TOOL, _ACTION = "./", "#mplab", "#run"
_MEDIA = {
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".pcapng": "application/vnd.tcpdump.pcap",
    ".yaml": "application/yaml",
    ".har": "application/json",
}
_AUTHOR = re.compile(r"(?P<name>[^<>]+?)\s*(?:<(?P<id>https?://[^<>\s]+)>)?")


@dataclass(frozen=True)
class Author:
    """A person; ``url`` is an ORCID or another page of theirs, or ""."""

    name: str
    url: str = ""

    @classmethod
    def parse(cls, text: str) -> "Author":
        """Parse ``Ada Lovelace <https://orcid.org/…>``. Raises ValueError when ``text`` is not NAME or NAME <URL>."""
        match = _AUTHOR.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"an author is NAME or NAME <URL>, not {text!r}")
        return cls(match["name"], match["id"] or "")


@dataclass(frozen=True)
class Publication:
    """Metadata of a bundle that only its publisher can supply."""

    authors: tuple[Author, ...] = ()
    licence: str = ""
    """URL or SPDX identifier of the licence."""


@dataclass(frozen=True)
class BundleFile:
    """Name, size and checksum of a file of the bundle."""

    name: str
    size_bytes: int
    sha256: str


def metadata(run: Run, parts: Sequence[BundleFile], publication: Publication, published: str) -> bytes:
    """Return the content of ``ro-crate-metadata.json``, a JSON-LD document.

    ``parts`` are the files of the bundle; ``published`` is an ISO 8601 date and time.
    """
    graph = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": _ROOT},
            "conformsTo": {"@id": SPECIFICATION},
        },
        _root(run, parts, publication, published),
        *_entities(run, publication, published),
        *(_file(part) for part in parts),
    ]
    return (json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=1, ensure_ascii=False) + "\n").encode()


def _root(run: Run, parts: Sequence[BundleFile], publication: Publication, published: str) -> dict[str, Json]:
    experiment = run.manifest.experiment
    root: dict[str, object] = {
        "@id": _ROOT,
        "@type": "Dataset",
        "name": experiment.title or experiment.name,
        "identifier": run.manifest.run_id,
        "description": _description(run),
        "datePublished": published,
        "hasPart": [_reference(_uri(part.name)) for part in parts],
        "mentions": _reference(_ACTION),
    }
    if publication.licence:
        root["license"] = _reference(_licence(publication.licence))
    if publication.authors:
        root["author"] = [_reference(_author_id(author)) for author in publication.authors]
    return root


def _description(run: Run) -> str:
    experiment = run.manifest.experiment
    counts = [plural(count, f"{outcome} cell") for outcome, count in run.counts.items() if count]
    transports = listed([transport.title for transport in run.transports])
    scenarios = listed([scenario.label for scenario in experiment.scenarios])
    links = listed([link.title or link.name for link in experiment.links])
    anonymised = (run.directory / ANONYMISED).is_file()
    return (
        f"A run of the experiment {experiment.name} with mplab: {scenarios} over {transports}; link conditions: "
        f"{links}; seed {experiment.seed}; {listed(counts)}. Raw data, report and checksums; "
        "`mplab reproduce` makes the report again, and then the experiment."
        + (f" Addresses and names of real networks are replaced by others: {ANONYMISED}." if anonymised else "")
    )


def _entities(run: Run, publication: Publication, published: str) -> Iterator[dict[str, Json]]:
    """Yield the entities of the program, the run (a ``CreateAction``), the authors and the licence."""
    manifest = run.manifest
    yield _tool(manifest)
    yield {
        "@id": _ACTION,
        "@type": "CreateAction",
        "name": f"mplab run: {manifest.experiment.name}",
        "instrument": _reference(_TOOL),
        "object": _reference("experiment.yaml"),
        "result": _reference(_ROOT),
        **({"startTime": manifest.started} if manifest.started else {}),
        "endTime": published,
    }
    for author in publication.authors:
        yield {"@id": _author_id(author), "@type": "Person", "name": author.name}
    if publication.licence:
        yield {"@id": _licence(publication.licence), "@type": "CreativeWork", "name": publication.licence}


def _tool(manifest: Manifest) -> dict[str, Json]:
    commit, dirty = manifest.git.commit, manifest.git.dirty
    version = str(manifest.versions.get("mplab", ""))
    words = f", git commit {commit}{' with local changes' if dirty else ''}" if commit else ""
    return {
        "@id": _TOOL,
        "@type": "SoftwareApplication",
        "name": "mplab",
        "description": f"mplab {version}{words}".strip(),
        "softwareVersion": version,
        **({"identifier": str(commit)} if commit else {}),
        "softwareRequirements": [
            f"{name} {value}" for name, value in manifest.versions.items() if isinstance(value, str) and value
        ],
    }


def _file(part: BundleFile) -> dict[str, Json]:
    suffix = part.name[part.name.rfind(".") :] if "." in part.name else ""
    media = _MEDIA.get(suffix) or _TYPES.guess_type(part.name)[0]
    return {
        "@id": _uri(part.name),
        "@type": "File",
        "name": part.name,
        "contentSize": str(part.size_bytes),
        "sha256": part.sha256,
        **({"encodingFormat": media} if media else {}),
    }


_TYPES = mimetypes.MimeTypes()
"""Python's built-in media types; the host's files of media types are not read."""


def _uri(name: str) -> str:
    return quote(name)


def _reference(identity: str) -> Mapping[str, str]:
    return {"@id": identity}


def _licence(given: str) -> str:
    return given if "://" in given else f"https://spdx.org/licenses/{quote(given)}"


def _author_id(author: Author) -> str:
    return author.url or f"#author-{quote(author.name)}"
