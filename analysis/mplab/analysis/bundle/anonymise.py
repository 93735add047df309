"""Copy a run without addresses of real networks and without names of its networks and devices.

The copy has only captures, text, and recordings of the lab's own sound. All other files are left out, and so are
screenshots, phones' logs, the text on their screens, and TLS keys. A file whose own name contains a replaced name or
address is left out, too.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from mplab.analysis.bundle.addresses import Addresses
from mplab.analysis.bundle.contents import ANONYMISED, contents
from mplab.analysis.bundle.text_anonymiser import TextAnonymiser, label, named, words_in
from mplab.analysis.errors import BundleError
from mplab.analysis.record.decode import COMPRESSED, SUFFIX, TLS_KEYS
from mplab.analysis.record.run import Run, read_lines, read_run

TEXT = frozenset({".json", ".jsonl", ".yaml", ".yml", ".log", ".har", ".txt", ".html", ".xml", ".csv"})
SOUND = ".wav"
"""Recordings of sound that the lab itself played; scores are computed from them."""

_SCREENS = ("screenshots", "screenshots-peer")
_UNSAID = ("logcat", "appium", TLS_KEYS.stem)
"""Prefixes of files with arbitrary content: a phone's log, the text on its screen, TLS keys."""
_VOCABULARY = frozenset({"cellular", "localhost", "mplab", "origin", "phone", "proxy", "router", "virtual", "wifi"})
_HOST = "host"


@dataclass(frozen=True)
class Omitted:
    """A file of the run that the anonymised copy lacks or, if ``cut``, has only up to the first damaged block."""

    name: str
    cut: bool = False


def anonymise(run: Run, target: Path, key: bytes = b"") -> list[Omitted]:
    """Copy a run's raw data into a new folder with addresses and names replaced consistently; return the omitted files.

    Args:
        run: the run to copy; it is not changed.
        target: the folder to create.
        key: secret of `mplab.analysis.bundle.addresses.KEY_BYTES` bytes; by default, a random one that is not stored.

    Raises:
        BundleError: the run's captures have payload or cannot be rewritten, its lab file is no YAML, a file name
            cannot be in a bundle, or a replaced name is a word that mplab needs.
        ProgramMissingError: mptrace is missing.
    """
    if run.manifest.experiment.capture == "payload":
        raise BundleError(
            f"{run.directory}: cannot be anonymised: with 'capture: payload' its captures hold what was transferred"
        )
    content = contents(run)
    with Addresses(key) as addresses:
        words = _words(run, addresses, content.raw)
        target.mkdir(parents=True)
        for folder in content.folders:
            if not set(PurePosixPath(folder).parts) & set(_SCREENS):
                (target / folder).mkdir(parents=True, exist_ok=True)
        omitted = [Omitted(name, cut) for name, cut in _copy_all(run.directory, target, content.raw, words)]
    omitted.sort(key=lambda one: one.name)
    (target / ANONYMISED).write_text(_said(omitted), encoding="utf-8")
    if read_run(target).counts != run.counts:
        raise BundleError(f"{run.directory}: cannot be anonymised: a name in it is a word that mplab itself needs")
    return omitted


def _copy_all(root: Path, target: Path, names: Iterable[str], words: TextAnonymiser) -> Iterator[tuple[str, bool]]:
    """Copy the files ``names``, anonymised, and yield (name, cut) of the omitted ones (`Omitted`).

    Text is written last: a hexadecimal number is recognised as an address only when that address was seen before.

    Raises:
        BundleError: a capture cannot be anonymised.
    """
    texts = []
    for name in names:
        if words(name) != name:
            yield words(name), False
        elif name.removesuffix(COMPRESSED).endswith(SUFFIX):
            if (root / name).stat().st_size == 0:
                shutil.copyfile(root / name, target / name)
                continue
            try:
                complete = words.addresses.rewrite(root / name, target / name)
            except BundleError as error:
                raise BundleError(f"{root / name}: cannot be anonymised: {error}") from error
            if not complete:
                yield name, True
        elif _is_text(root, name):
            words(_read(root / name))
            texts.append(name)
        elif PurePosixPath(name).suffix == SOUND:
            shutil.copyfile(root / name, target / name)
        else:
            yield name, False
    for name in texts:
        text = words(_read(root / name))
        (target / name).write_bytes(text.encode(errors="surrogateescape"))


def _is_text(root: Path, name: str) -> bool:
    path = PurePosixPath(name)
    if set(path.parts) & set(_SCREENS) or path.name.startswith(_UNSAID):
        return False
    return (path.suffix in TEXT or name == ANONYMISED) and b"\0" not in (root / name).read_bytes()


def _read(path: Path) -> str:
    return path.read_bytes().decode(errors="surrogateescape")


def _words(run: Run, addresses: Addresses, names: Iterable[str]) -> TextAnonymiser:
    """Return an anonymiser for the names in manifest, lab file, cells and logs; words that mplab needs are kept."""
    manifest = _json(run.directory / "manifest.json")
    cells = [_json(cell.directory / "cell.json") for cell in run.cells if cell.directory is not None]
    replaced = [*named(manifest.get("lab"))]
    for name in names:
        if name == "lab.yaml":
            replaced += named(_yaml(run.directory / name))
        elif name.endswith(".jsonl"):
            replaced += (pair for record in read_lines(run.directory / name) for pair in _of_device(record))
    replaced += (pair for cell in cells for pair in _of_device(cell))
    experiment = run.manifest.experiment
    vocabulary = {scenario.label for scenario in experiment.scenarios} | {
        scenario.name for scenario in experiment.scenarios
    }
    vocabulary |= {transport.label for transport in experiment.transports} | {link.name for link in experiment.links}
    records = [*run.events, *(observation for cell in run.cells for observation in cell.observations())]
    vocabulary |= {experiment.name, *(str(record.get("event")) for record in records)}
    vocabulary |= {word for content in (manifest, cells, records) for word in words_in(content)}
    return TextAnonymiser(addresses, label(replaced), _VOCABULARY | vocabulary)


def _of_device(record: object) -> Iterator[tuple[str, str]]:
    """Yield (key, name) for each device or network named in a log record; names of hosts are skipped.

    In a log, the hosts are servers.
    """
    yield from ((key, name) for key, name in named(record) if key != _HOST)


def _json(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _yaml(path: Path) -> object:
    try:
        return YAML(typ="safe", pure=True).load(path.read_bytes())
    except (YAMLError, ValueError) as error:
        raise BundleError(f"{path}: cannot be anonymised: it is no YAML: {error}") from error


def _said(omitted: Iterable[Omitted]) -> str:
    left = "\n".join(f"- `{file.name}`" + (": cut off at a block that is not whole" * file.cut) for file in omitted)
    return f"""# This run was anonymised

`mplab bundle --anonymize` made other data of it, with a random key that was not kept, and analysed those:

- IP addresses of real networks are others, the same ones in all files. Two that shared the beginning of their addresses
  still do (Crypto-PAn). Those of the virtual lab, loopback, documentation, multicast and broadcast are as they were.
- MAC addresses are random ones, the same in all files; whether they are locally administered is as it was.
- Names of WiFi networks, serial numbers, and names and keys of hosts in the lab file are labels, such as `ssid-1`.
- Captures have headers alone. Checksums of IPv4 and TCP that were right are right again. Those that were wrong or are
  of UDP and ICMP, signatures of MPTCP's ADD_ADDR, options of IP and all options of TCP but the usual ones and MPTCP's
  are zeros; so is everything behind the headers. Comments are gone.

All else is as it was, such as times, host names of servers, URLs and headers in HAR files, places and mobile cells in
phone logs. The plan's hashes are those of the first data.

## Not in it

{left or "Nothing was left out."}
"""
