"""Anonymised bundles reveal nothing of a real network, and their report can be reproduced."""

import gzip
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path

import polars as pl
import pytest

from mplab.analysis.bundle import checksums
from mplab.analysis.bundle.addresses import KEY_BYTES, Addresses
from mplab.analysis.bundle.anonymise import anonymise
from mplab.analysis.bundle.contents import ANONYMISED
from mplab.analysis.bundle.read import open_bundle
from mplab.analysis.bundle.rebuild import rebuild
from mplab.analysis.bundle.write import Options, write_bundle
from mplab.analysis.errors import BundleError, ProgramMissingError
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.decode import find_mptrace
from mplab.analysis.record.run import read_run
from tests.unit.analysis.synthetic import Synthetic

pytestmark = pytest.mark.long

TRACES = Path(__file__).parents[4] / "analysis" / "mptrace" / "testdata"
KEY = bytes(range(KEY_BYTES))
OF_ADDRESSES = {"client", "server", "address"}
SECRETS = ("10.1.0.2", "10.1.0.1", "185.60.216.35", "2a02:a03f:8d7a:1::17", "ac:37:43:1b:2c:3d")
NAMES = ("Chez nous", "0A1B2C3D", "router.example.org", "build7.corp.example")
MACHINE = "5d41402abc4b2a76"


@pytest.fixture
def mptrace() -> Path:
    try:
        return find_mptrace()
    except ProgramMissingError:
        pytest.skip("mptrace has not been built")


def packed(address: str) -> bytes:
    return ip_address(address).packed


def content(path: Path) -> bytes:
    if path.suffix == ".parquet":
        return repr(pl.read_parquet(path).rows()).encode()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def tables(mptrace: Path, capture: Path, folder: Path) -> dict[str, pl.DataFrame]:
    subprocess.run([str(mptrace), str(capture), "-o", str(folder)], check=True, capture_output=True)
    return {path.name: pl.read_parquet(path) for path in folder.glob("*.parquet")}


@pytest.mark.parametrize(
    "name",
    [
        "phone-v1.pcapng.gz",
        "phone-v0.pcapng.gz",
        "two-paths-wlan0.pcapng",
        "kernel/ipv6-wlan0.pcapng.gz",
        "kernel/add-addr-s1.pcapng.gz",
    ],
)
def test_a_capture_tells_the_same_but_for_its_addresses(name: str, mptrace: Path, tmp_path: Path) -> None:
    new = tmp_path / Path(name).name
    addresses = Addresses(KEY, mptrace)
    assert addresses.rewrite(TRACES / name, new)
    old = content(TRACES / name)
    assert any(len(address) == 16 for address in addresses.replaced) or "add" in name
    for address in addresses.replaced:
        assert address in old
        assert address not in content(new)
    before, after = tables(mptrace, TRACES / name, tmp_path / "a"), tables(mptrace, new, tmp_path / "b")
    assert before["subflows.parquet"].height > 0
    assert set(before) == set(after)
    text = {str(ip_address(a)): str(ip_address(b)) for a, b in addresses.replaced.items() if len(a) != 6}
    for table, frame in before.items():
        named = OF_ADDRESSES & set(frame.columns)
        expected = frame.with_columns(pl.col(*named).replace(text)) if named else frame
        assert expected.equals(after[table]), table


def test_checksums_of_a_real_capture_are_still_right(mptrace: Path, tmp_path: Path) -> None:
    old, new = TRACES / "phone-v1.pcapng.gz", tmp_path / "new.pcapng.gz"
    assert Addresses(KEY, mptrace).rewrite(old, new)
    results = [checked(capture) for capture in (old, new)]
    assert results[0] == results[1]


def checked(capture: Path) -> list[str]:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    wanted = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    fields = ["-T", "fields", "-e", "ip.checksum.status", "-e", "tcp.checksum.status"]
    argv = ["tshark", "-r", str(capture), *wanted, *fields]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_capture_that_was_cut_off_keeps_what_is_whole(mptrace: Path, tmp_path: Path) -> None:
    addresses = Addresses(KEY, mptrace)
    old = TRACES / "two-paths-wlan0.pcapng"
    cut, new = tmp_path / "cut.pcapng", tmp_path / "new.pcapng"
    cut.write_bytes(old.read_bytes()[:-70])
    assert not addresses.rewrite(cut, new)
    assert 0 < len(new.read_bytes()) < len(cut.read_bytes()) + 20
    cut.write_bytes(b"no capture at all")
    with pytest.raises(BundleError, match=r"^not a pcap or pcapng file$"):
        addresses.rewrite(cut, tmp_path / "other.pcapng")
    with pytest.raises(BundleError, match=r"new\.pcapng: file exists"):
        addresses.rewrite(old, new)


@pytest.fixture
def real(synthetic: Callable[..., Synthetic], tmp_path: Path) -> Path:
    """An analysed run on real networks, with captures."""
    lab = {
        "kind": "real",
        "file": {"routers": {"home": {"host": NAMES[2], "radio": {"ssid": NAMES[0]}}}},
        "identity": {"serial": NAMES[1]},
        "containers": {"engine": f"ssh://lab@{NAMES[3]}:2222"},
    }
    builder = synthetic(repetitions=1, labels=["1 MB"], manifest_changes={"lab": lab})
    run = builder.build()
    (run / "lab.yaml").write_text(
        f"mplab: 1\nrouters:\n  home:\n    host: {NAMES[2]}\n    radio: {{ssid: {NAMES[0]}}}\n"
        f"proxy: {{engine: 'ssh://lab@{NAMES[3]}:2222'}}\n"
    )
    log = run / "events.jsonl"
    first, *others = log.read_text().splitlines(keepends=True)
    log.write_text(json.dumps({**json.loads(first), "machine": MACHINE}) + "\n" + "".join(others))
    for number, cell in enumerate(sorted((run / "cells").iterdir())):
        shutil.rmtree(cell / "tables")
        shutil.copy(TRACES / "two-paths-wlan0.pcapng", cell / "phone-wlan0.pcapng")
        shutil.copy(TRACES / "kernel" / "ipv6-rmnet0.pcapng.gz", cell / "phone-rmnet0.pcapng.gz")
        for folder in ("logs", "screenshots", "counters"):
            (cell / folder).mkdir()
        (cell / "logs" / "agent.log").write_text(f"to {' '.join(SECRETS)}; adb -s {NAMES[1]}; joined {NAMES[0]}\n" * 3)
        (cell / "logs" / "proxy.log").write_text("23D83CB9:01BB AC37431B2C3D ac-37-43-1b-2c-3d 185-60-216-35\n")
        (cell / "logs" / "wifi.jsonl").write_text(json.dumps({"ssid": f'"{NAMES[0]}"', "bssid": SECRETS[4]}) + "\n")
        (cell / "logs" / "logcat.txt").write_text("anything\n")
        (cell / "screenshots" / "step-01.xml").write_text("<node/>")
        (cell / "screenshots" / "step-01.png").write_bytes(b"\x89PNG")
        (cell / f"dump-{number}.bin").write_bytes(b"\0\1")
    analyze(run)
    return run


def test_nothing_of_a_real_network_is_in_a_bundle_and_its_report_is_made_again(
    real: Path, mptrace: Path, no_figures: None, tmp_path: Path
) -> None:
    before = checksums.digests(real, [p.relative_to(real).as_posix() for p in real.rglob("*") if p.is_file()])
    options = Options(anonymise=True)
    written = write_bundle(real, tmp_path / "b.tar.gz", options)
    assert written.omitted == 12
    bundle = open_bundle(written.path, tmp_path / "out")
    forms = [form.encode() for form in (*SECRETS, *NAMES, MACHINE)]
    forms += [packed(address) for address in SECRETS[:2]]
    forms += [b"23D83CB9", b"AC37431B2C3D", b"ac-37-43-1b-2c-3d", b"185-60-216-35"]
    first = [content(path) for path in real.rglob("*") if path.is_file()]
    assert [form for form in forms if not any(form in data for data in first)] == []
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any(path.name == "phone-rmnet0.pcapng.gz" for path in files)
    for path in files:
        data = content(path)
        assert [form for form in forms if form in data] == [], path
    root = bundle.run.directory
    names = {path.name for path in files}
    assert not names & {"logcat.txt", "step-01.xml", "step-01.png", "dump-0.bin"}
    notice = (root / ANONYMISED).read_text()
    assert notice.count("logs/logcat.txt`") == 3
    crate = json.loads((root / "ro-crate-metadata.json").read_text())["@graph"]
    assert ANONYMISED in next(entity for entity in crate if entity["@id"] == "./")["description"]

    log = next(root.glob("cells/*/logs/agent.log")).read_text()
    client = pl.read_parquet(next((bundle.before).glob("cells/*/tables/connections.parquet")))["client"]
    assert client[0] in log, "text says of an address what captures say"
    assert "adb -s serial-1; joined ssid-1" in log

    remade = rebuild(bundle)
    assert remade.differences == ()
    assert remade.same == len(bundle.derived) > 10
    assert before == checksums.digests(real, before), "the run itself is not changed"
    again = open_bundle(write_bundle(real, tmp_path / "c.tar.gz", options).path, tmp_path / "again").run.directory
    assert (again / "lab.yaml").read_bytes() == (root / "lab.yaml").read_bytes()
    assert next(again.glob("cells/*/logs/agent.log")).read_text() != log, "another key"


def test_a_run_with_payload_is_refused(real: Path, tmp_path: Path) -> None:
    manifest = json.loads((real / "manifest.json").read_text())
    manifest["experiment"]["capture"] = "payload"
    (real / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="capture: payload"):
        write_bundle(real, tmp_path / "b.tar.gz", replace(Options(), anonymise=True))
    assert not (tmp_path / "b.tar.gz").exists()


def test_a_capture_that_nobody_can_read_is_refused(real: Path, tmp_path: Path) -> None:
    cell = sorted((real / "cells").iterdir())[0]
    (cell / "phone-wlan0.pcapng").write_bytes(b"no capture")
    with pytest.raises(BundleError, match=r"phone-wlan0\.pcapng: cannot be anonymised: not a pcap"):
        anonymise(read_run(real), tmp_path / "copy")
