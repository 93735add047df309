"""Anonymised bundles reveal nothing of a real network, and their report can be reproduced."""

import gzip
import json
import shutil
import struct
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
from mplab.analysis.bundle.blocks import rewrite
from mplab.analysis.bundle.contents import ANONYMISED
from mplab.analysis.bundle.frames import ETHERNET, RAW, Frames
from mplab.analysis.bundle.read import open_bundle
from mplab.analysis.bundle.rebuild import rebuild
from mplab.analysis.bundle.write import Options, write_bundle
from mplab.analysis.errors import BundleError, ProgramMissingError
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.decode import find_mptrace
from mplab.analysis.record.run import read_run
from tests.unit.analysis.synthetic import Synthetic

TRACES = Path(__file__).parents[4] / "analysis" / "mptrace" / "testdata"
KEY = bytes(range(KEY_BYTES))
OF_ADDRESSES = {"client", "server", "address"}
SECRETS = ("10.1.0.2", "10.1.0.1", "185.60.216.35", "2a02:a03f:8d7a:1::17", "ac:37:43:1b:2c:3d")
NAMES = ("Chez nous", "0A1B2C3D", "router.example.org", "build7.corp.example")


@pytest.fixture
def mptrace() -> Path:
    try:
        return find_mptrace()
    except ProgramMissingError:
        pytest.skip("mptrace has not been built")


def packet(protocol: int, body: bytes) -> bytes:
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0, *map(packed, SECRETS[1:3]))
    return header + body


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
    addresses = Addresses(KEY)
    new = tmp_path / Path(name).name
    assert rewrite(TRACES / name, new, Frames(addresses))
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


def test_checksums_of_a_real_capture_are_still_right(tmp_path: Path) -> None:
    old, new = TRACES / "phone-v1.pcapng.gz", tmp_path / "new.pcapng.gz"
    assert rewrite(old, new, Frames(Addresses(KEY)))
    found = [checked(capture) for capture in (old, new)]
    assert found[0] == found[1]


def checked(capture: Path) -> list[str]:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    wanted = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    fields = ["-T", "fields", "-e", "ip.checksum.status", "-e", "tcp.checksum.status"]
    argv = ["tshark", "-r", str(capture), *wanted, *fields]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_capture_that_was_cut_off_keeps_what_is_whole(tmp_path: Path) -> None:
    old = TRACES / "two-paths-wlan0.pcapng"
    cut, new = tmp_path / "cut.pcapng", tmp_path / "new.pcapng"
    cut.write_bytes(old.read_bytes()[:-70])
    assert not rewrite(cut, new, Frames(Addresses(KEY)))
    assert 0 < len(new.read_bytes()) < len(cut.read_bytes()) + 20
    cut.write_bytes(b"no capture at all")
    with pytest.raises(BundleError, match="no pcapng file"):
        rewrite(cut, new, Frames(Addresses(KEY)))


def test_what_is_behind_the_headers_is_gone() -> None:
    frames = Frames(Addresses(KEY))
    inside = packet(17, b"\x00\x35\x00\x35\x00\x08\x00\x00secret")
    new = frames(RAW, packet(1, b"\x03\x01\x12\x34\0\0\0\0" + inside))
    assert len(new) == 28 + len(inside)
    assert new[20:] == b"\x03\x01" + bytes(len(new) - 22)
    assert frames(RAW, packet(17, inside))[20:] == inside[:6] + bytes(len(inside) - 6)
    gateway = frames(RAW, packet(1, b"\x05\x01\x12\x34" + packed(SECRETS[2]) + inside))
    assert gateway[24:28] == Addresses(KEY)(packed(SECRETS[2]))
    lldp = frames(ETHERNET, bytes.fromhex("0180c200000e ac37431b2c3d 88cc") + b"name of a switch")
    assert lldp[14:] == bytes(16)
    assert lldp[6:12] == Addresses(KEY)(bytes.fromhex("ac37431b2c3d"))


def test_the_signature_of_an_announced_address_is_gone() -> None:
    option = b"\x1e\x10\x30\x02" + packed(SECRETS[2]) + b"\xaa" * 8
    tcp = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 9 << 4, 16, 5, 0xBEEF, 0) + option + b"\x01" * 0
    new = Frames(Addresses(KEY))(RAW, packet(6, tcp))
    assert new[40:44] == option[:4]
    assert new[44:48] == Addresses(KEY)(packed(SECRETS[2]))
    assert new[48:] == bytes(8)
    assert new[36:38] == bytes(2), "a checksum that was wrong may tell anything"
    assert sound(Frames(Addresses(KEY))(RAW, packet(6, right(tcp)))), "one that was right is right"


def pseudo(addresses: bytes, size: int) -> int:
    return int(sum(struct.unpack("!4H", addresses))) + 6 + size


def right(tcp: bytes, addresses: bytes = b"".join(map(packed, SECRETS[1:3]))) -> bytes:
    bare = tcp[:16] + bytes(2) + tcp[18:]
    total = sum(struct.unpack(f"!{len(bare) // 2}H", bare)) + pseudo(addresses, len(bare))
    return bare[:16] + struct.pack("!H", 0xFFFF - total % 0xFFFF) + bare[18:]


def sound(datagram: bytes) -> bool:
    tcp = datagram[20:]
    total = sum(struct.unpack(f"!{len(tcp) // 2}H", tcp)) + pseudo(datagram[12:20], len(tcp))
    return bool(total % 0xFFFF == 0)


def test_checksums_that_a_card_was_to_make_stay_such() -> None:
    tcp = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 5 << 4, 16, 5, 0, 0) + b"content"
    old = packet(6, tcp)
    waiting = pseudo(old[12:20], len(tcp)) % 0xFFFF
    new = Frames(Addresses(KEY))(RAW, old[:36] + struct.pack("!H", waiting) + old[38:])
    assert int.from_bytes(new[36:38], "big") == pseudo(new[12:20], len(tcp)) % 0xFFFF
    assert new[40:] == bytes(7)


def test_header_checksums_are_right_where_they_were() -> None:
    addresses = Addresses(KEY)
    frames = Frames(addresses)
    wrong = frames(RAW, packet(255, b""))
    assert wrong[10:12] == b"\0\0"
    (total,) = (sum(struct.unpack("!10H", packet(255, b""))),)
    right = bytearray(packet(255, b""))
    struct.pack_into("!H", right, 10, ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
    new = frames(RAW, bytes(right))
    again = sum(struct.unpack("!10H", new))
    assert (again & 0xFFFF) + (again >> 16) == 0xFFFF


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
    found = open_bundle(written.path, tmp_path / "out")
    forms = [form.encode() for form in (*SECRETS, *NAMES)]
    forms += [packed(address) for address in SECRETS[:2]]
    forms += [b"23D83CB9", b"AC37431B2C3D", b"ac-37-43-1b-2c-3d", b"185-60-216-35"]
    first = [content(path) for path in real.rglob("*") if path.is_file()]
    assert [form for form in forms if not any(form in data for data in first)] == []
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert any(path.name == "phone-rmnet0.pcapng.gz" for path in files)
    for path in files:
        data = content(path)
        assert [form for form in forms if form in data] == [], path
    root = found.run.directory
    names = {path.name for path in files}
    assert not names & {"logcat.txt", "step-01.xml", "step-01.png", "dump-0.bin"}
    said = (root / ANONYMISED).read_text()
    assert said.count("logs/logcat.txt`") == 3
    crate = json.loads((root / "ro-crate-metadata.json").read_text())["@graph"]
    assert ANONYMISED in next(one for one in crate if one["@id"] == "./")["description"]

    log = next(root.glob("cells/*/logs/agent.log")).read_text()
    client = pl.read_parquet(next((found.before).glob("cells/*/tables/connections.parquet")))["client"]
    assert client[0] in log, "text says of an address what captures say"
    assert "adb -s serial-1; joined ssid-1" in log

    remade = rebuild(found)
    assert remade.differences == ()
    assert remade.same == len(found.derived) > 10
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
    with pytest.raises(BundleError, match=r"phone-wlan0\.pcapng: cannot be anonymised: it is no pcapng file"):
        anonymise(read_run(real), tmp_path / "copy")
