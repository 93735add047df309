"""The analysis on a real scheduler with real workers: the same bytes, whichever program dies during it."""

import http.client
import os
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import trustme

from mplab.analysis.cluster.address import Keys, Local, SchedulerAddress
from mplab.analysis.cluster.connect import connected
from mplab.analysis.cluster.drive import Drive, Spread
from mplab.analysis.cluster.store import Store, store_at
from mplab.analysis.cluster.work import AnalysedRun
from mplab.analysis.errors import ClusterError, ScenarioMissingError
from mplab.analysis.pipeline import analyze
from tests.foreign import Foreign
from tests.unit.analysis.cluster.conftest import Programs, wait_for
from tests.unit.analysis.cluster.runs import Runs, content
from tests.unit.analysis.cluster.sftp import PASSWORD, serving

pytestmark = pytest.mark.long


def alone(runs: Runs) -> None:
    """Analyse the runs without a cluster."""
    for name in runs.names:
        analyze(runs.alone / name)


def spread(
    address: Local | SchedulerAddress,
    runs: Runs,
    store: Store | None = None,
    tell: Callable[[Spread], None] | None = None,
) -> list[AnalysedRun]:
    """Analyse the copies of the runs on a cluster."""
    store = store or store_at(str(runs.spread))
    with connected(address) as client:
        stored = [(store, name) for name in runs.names]
        return list(Drive(client, stored, tell=tell).results())


def check_same(runs: Runs, results: list[AnalysedRun]) -> None:
    assert {result.run: result.error for result in results} == dict.fromkeys(runs.names, "")
    assert all(result.counts["ok"] >= 1 for result in results)
    ours, theirs = content(runs.alone), content(runs.spread)
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    outputs = [name for name in theirs if name.endswith(("subflows.parquet", "scores.json", "index.html"))]
    assert len(outputs) > 3 * len(runs.names)


def test_local_processes_write_the_same_bytes_and_listen_on_loopback_alone(tmp_path: Path, foreign: Foreign) -> None:
    runs = Runs(tmp_path, foreign)
    alone(runs)
    heard: dict[int, set[str]] = {}
    ports: set[int] = set()
    fetched: set[int] = set()
    answers: list[str] = []

    def look(spread: Spread) -> None:
        assert spread.workers == 2
        for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # mptrace processes start and end
                listening = [c for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
                heard.setdefault(process.pid, set()).update(str(connection.laddr[0]) for connection in listening)
                ports.update(int(connection.laddr[1]) for connection in listening)
        for port in ports - fetched:
            fetched.add(port)
            answers.append(fetch(port))

    check_same(runs, spread(Local(2), runs, tell=look))
    assert set(answers) == {"404", "no HTTP"}
    listeners = {pid for pid, addresses in heard.items() if addresses}
    assert set.union(*heard.values()) == {"127.0.0.1"}
    assert len(listeners) == 3, "scheduler and two workers"
    assert [pid for pid in listeners if psutil.pid_exists(pid)] == [os.getpid()], "they end with the analysis"


def fetch(port: int) -> str:
    """Return the answer of a port to requests for pages without keys."""
    for page in ("health", "json/identity.json", "metrics"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as answer:
                return str(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
        except (OSError, http.client.HTTPException):
            return "no HTTP"
    return "404"


def test_a_worker_killed_in_the_middle_is_made_up_for(tmp_path: Path, foreign: Foreign, programs: Programs) -> None:
    runs = Runs(tmp_path, foreign)
    alone(runs)
    runs.gate.mkdir()
    (runs.gate / "closed").touch()
    programs.scheduler()
    first, second = programs.worker(), programs.worker()
    results: list[AnalysedRun] = []
    work = threading.Thread(target=lambda: results.extend(spread(SchedulerAddress(programs.address), runs)))
    work.start()
    wait_for(lambda: len(at_gate(runs)) == 2, "both workers are scoring")
    assert set(at_gate(runs)) == {first.pid, second.pid}
    first.send_signal(signal.SIGKILL)
    first.wait()
    (runs.gate / "closed").unlink()
    work.join()
    check_same(runs, results)
    scored = at_gate(runs)
    assert scored[second.pid] > scored[first.pid] == {next(iter(scored[first.pid]))}, "the other did its cell again"


def at_gate(runs: Runs) -> dict[int, set[str]]:
    """Return process id → cells that the process has started to score."""
    cells: dict[int, set[str]] = {}
    for path in runs.gate.glob("* *"):
        pid, _, cell = path.name.partition(" ")
        cells.setdefault(int(pid), set()).add(cell)
    return cells


def test_local_processes_that_die_again_and_again_are_replaced(tmp_path: Path, foreign: Foreign) -> None:
    runs = Runs(tmp_path, foreign, count=3)
    alone(runs)
    runs.gate.mkdir()
    killed: list[int] = []

    def kill(spread: Spread) -> None:
        workers = [pid for pid in at_gate(runs) if pid not in killed and psutil.pid_exists(pid)]
        if workers and len(killed) < min(3, spread.cells_done / 3):
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])

    check_same(runs, spread(Local(2), runs, tell=kill))
    assert len(killed) == 3


def test_an_encrypted_cluster_lets_in_who_has_keys(tmp_path: Path, foreign: Foreign, programs: Programs) -> None:
    runs = Runs(tmp_path, foreign, count=1)
    alone(runs)
    keys, strangers = certificates(tmp_path / "ours"), certificates(tmp_path / "theirs")
    programs.options = ("--tls-ca-file", str(keys.authority), "--tls-cert", str(keys.certificate))
    programs.options += ("--tls-key", str(keys.key))
    address = programs.scheduler()
    assert address.startswith("tls://127.0.0.1:")
    programs.worker()
    programs.worker()
    check_same(runs, spread(SchedulerAddress(address, keys), runs))
    with pytest.raises(ClusterError, match="no scheduler answers"):
        spread(SchedulerAddress(address, strangers), runs)


def certificates(folder: Path) -> Keys:
    folder.mkdir()
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    keys = Keys(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    authority.cert_pem.write_to_path(str(keys.authority))
    leaf.cert_chain_pems[0].write_to_path(str(keys.certificate))
    leaf.private_key_pem.write_to_path(str(keys.key))
    return keys


def test_runs_on_a_server_are_fetched_and_results_put_there(
    tmp_path: Path, foreign: Foreign, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(tmp_path, foreign)
    alone(runs)
    home = tmp_path / "home"
    login = {"HOME": str(home), "FSSPEC_SFTP_USERNAME": "lab", "FSSPEC_SFTP_PASSWORD": PASSWORD}
    with serving(runs.spread, home) as url:
        programs.scheduler()
        programs.worker(**login)
        programs.worker(**login)
        store = store_at(url)
        results = spread(SchedulerAddress(programs.address), runs, store)
        assert [result.where for result in sorted(results, key=lambda r: r.run)] == [url + name for name in runs.names]
        check_same(runs, results)
        (home / ".ssh" / "known_hosts").write_text("")
        for worker in programs.running[1:]:
            worker.kill()
            worker.wait()
        programs.worker(**login)
        results = spread(SchedulerAddress(programs.address), runs, store)
    assert [("known_hosts does not have its key" in result.error) for result in results] == [True, True]


def test_what_is_wrong_with_a_run_is_said_and_the_others_are_analysed(tmp_path: Path, foreign: Foreign) -> None:
    runs = Runs(tmp_path, foreign, count=4)
    bad, unscored, changed, _ = names = runs.names
    for folder in (runs.alone, runs.spread):
        (folder / bad / "manifest.json").write_text("{")
        manifest = folder / unscored / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"name": "toy"', '"name": "gone"'))
        cell = sorted((folder / changed / "cells").iterdir())[0]
        (cell / "phone-wlan0.pcapng").write_bytes(b"no capture")
        (cell / "tables" / "ends").mkdir()
        (cell / "tables" / "ends" / "owd.parquet").write_bytes(b"of an older analysis")
        (cell / "scenario.jsonl").write_text('{"event": "done"}\n')
    for name in names[2:]:
        analyze(runs.alone / name)
    with pytest.raises(ScenarioMissingError) as missing:
        analyze(runs.alone / unscored)
    cell = sorted((runs.spread / changed / "cells").iterdir())[0]
    (cell / ".scores.json.0af3").write_bytes(b"of a worker that was killed")
    (cell / "tables" / ".subflows.parquet.0af3").write_bytes(b"of a worker that was killed")
    results = {result.run: result for result in spread(Local(2), runs)}
    assert f"{runs.spread / bad}: not a run directory: manifest.json cannot be read" in results[bad].error
    assert results[unscored].error == str(missing.value)
    assert any("phone-wlan0.pcapng" in problem for problem in results[changed].problems)
    assert any("KeyError: 'seconds'" in problem for problem in results[changed].problems)
    assert content(runs.alone) == content(runs.spread)


def test_what_kills_every_worker_is_given_up_and_the_others_are_analysed(tmp_path: Path, foreign: Foreign) -> None:
    runs = Runs(tmp_path, foreign, count=2)
    first, second = runs.names
    deadly = sorted((runs.spread / first / "cells").iterdir())[2]
    (deadly / "deadly").touch()
    killing = '    if (folder / "deadly").exists():\n        os.kill(os.getpid(), 9)\n    done ='
    foreign.scenario("toy", runs.scores.replace("    done =", killing))
    results = {result.run: result.error for result in spread(Local(2), runs)}
    assert "the workers with this task ended, one after the other" in results[first]
    assert results[second] == ""


def another_mptrace(folder: Path) -> Path:
    """Return a folder with another program called ``mptrace``."""
    program = folder / "bin" / "mptrace"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program.parent


def test_a_cluster_that_would_write_other_bytes_is_refused(
    tmp_path: Path, foreign: Foreign, programs: Programs
) -> None:
    runs = Runs(tmp_path, foreign, count=1)
    before = content(runs.spread)
    programs.scheduler()
    programs.worker(MPLAB_BIN=str(another_mptrace(tmp_path)))
    with pytest.raises(
        ClusterError,
        match=r"the worker tcp://127\.0\.0\.1:\d+ has other versions than this process: mptrace \w+, there \w+",
    ):
        spread(SchedulerAddress(programs.address), runs)
    assert content(runs.spread) == before


def test_a_worker_that_comes_later_and_is_another_ends_the_work(
    tmp_path: Path, foreign: Foreign, programs: Programs
) -> None:
    runs = Runs(tmp_path, foreign, count=1, repetitions=4)
    runs.gate.mkdir()
    (runs.gate / "closed").touch()
    programs.scheduler()
    programs.worker()
    wrong: list[Exception] = []

    def work() -> None:
        try:
            spread(SchedulerAddress(programs.address), runs)
        except ClusterError as error:
            wrong.append(error)

    working = threading.Thread(target=work)
    working.start()
    wait_for(lambda: len(at_gate(runs)) == 1, "a cell is being scored")
    programs.worker(MPLAB_BIN=str(another_mptrace(tmp_path)))
    working.join()
    (runs.gate / "closed").unlink()
    assert "has other versions than the client: mptrace" in str(wrong[0])


def test_a_scheduler_without_workers_is_not_waited_for_for_long(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mplab.analysis.cluster.connect.WORKERS_S", 0.5)
    programs.scheduler()
    with pytest.raises(ClusterError, match="no workers: start some with `dask worker tcp://127"):
        connected(SchedulerAddress(programs.address)).__enter__()


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_a_cluster_that_is_lost_ends_the_work(
    lost: str, tmp_path: Path, foreign: Foreign, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mplab.analysis.cluster.drive.LOOK_S", 0.2)
    monkeypatch.setattr("mplab.analysis.cluster.drive.PATIENCE_S", 1.0)
    runs = Runs(tmp_path, foreign, count=1)
    runs.gate.mkdir()
    (runs.gate / "closed").touch()
    programs.scheduler()
    programs.worker()
    scheduler, *workers = programs.running
    message = "the scheduler is lost" if lost == "scheduler" else "no workers for 1 s"

    def end() -> None:
        wait_for(lambda: bool(at_gate(runs)), "a cell is being scored")
        for program in [scheduler] if lost == "scheduler" else workers:
            program.kill()

    ending = threading.Thread(target=end)
    ending.start()
    with pytest.raises(ClusterError, match=message):
        spread(SchedulerAddress(programs.address), runs)
    ending.join()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_a_scheduler_that_is_not_there_is_said_so(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mplab.analysis.cluster.connect.CONNECT_S", 0.5)
    keys = certificates(tmp_path / "ours") if address.startswith("tls") else Keys()
    with (
        pytest.raises(ClusterError, match=f"{address}: no scheduler answers"),
        connected(SchedulerAddress(address, keys)),
    ):
        pass
