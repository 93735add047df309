"""Accepted and refused values of ``--cluster``."""

import pickle
from pathlib import Path

import pytest

from mplab.analysis.cluster.address import Keys, Local, SchedulerAddress, parse
from mplab.analysis.cluster.same import differences, fingerprint
from mplab.analysis.errors import AddressError
from tests.foreign import Foreign


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("local", Local()),
        ("local:12", Local(12)),
        ("tcp://127.0.0.1:8786", SchedulerAddress("tcp://127.0.0.1:8786")),
        ("tcp://lab-3.example:1", SchedulerAddress("tcp://lab-3.example:1")),
        ("tcp://[::1]:8786", SchedulerAddress("tcp://[::1]:8786")),
    ],
)
def test_what_an_address_means(text: str, means: Local | SchedulerAddress) -> None:
    assert parse(text) == means


@pytest.mark.parametrize(
    "text", ["", "local:0", "local:x", "lokal", "127.0.0.1:8786", "tcp://host", "tcp://host:0", "tcp://host:65536",
             "http://host:1", "tcp://user@host:1", "tcp://host:1/path", "inproc://x:1"],
)  # fmt: skip
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AddressError, match="not local, local:N, tcp://HOST:PORT or tls://HOST:PORT"):
        parse(text)


def test_keys_go_with_tls_and_memory_with_local_alone(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("ca", "cert", "key")]
    keys = Keys(*files)
    with pytest.raises(AddressError, match="there is no file"):
        parse("tls://host:1", keys)
    for file in files:
        file.touch()
    assert parse("tls://host:1", keys) == SchedulerAddress("tls://host:1", keys)
    assert parse("local:2", memory="2 GiB") == Local(2, "2 GiB")
    for text, some in (("tls://host:1", Keys()), ("tls://host:1", Keys(files[0], files[1]))):
        with pytest.raises(AddressError, match="needs --tls-ca, --tls-cert and --tls-key"):
            parse(text, some)
    with pytest.raises(AddressError, match="is not encrypted"):
        parse("tcp://host:1", keys)
    with pytest.raises(AddressError, match="keys are only for tls://"):
        parse("local", Keys(files[0]))
    with pytest.raises(AddressError, match="--memory is only for local"):
        parse("tcp://host:1", memory="2 GiB")


def test_code_and_versions_are_compared(foreign: Foreign) -> None:
    foreign.scenario("toy", "METRICS = ()\n")
    ours = pickle.loads(pickle.dumps(fingerprint()))  # noqa: S301 - as it comes from a worker
    assert differences(ours, fingerprint()) == ""
    foreign.scenario("toy", "METRICS = []\n")
    theirs = {**fingerprint(), "polars": "1.0"}
    assert differences(ours, theirs).startswith("plug-ins ")
    assert differences(ours, theirs).endswith(f", polars {ours['polars']}, there 1.0")
    assert differences(ours, {}).count(", there none") == len(ours)
