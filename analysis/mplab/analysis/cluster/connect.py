"""Connect to a cluster, and check that its software versions equal those of this process."""

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dask
from dask.system import CPU_COUNT
from dask.utils import parse_bytes
from distributed import Client, LocalCluster, Security
from distributed.system import MEMORY_LIMIT

from mplab.analysis.cluster.address import Local, SchedulerAddress
from mplab.analysis.cluster.same import differences, fingerprint
from mplab.analysis.errors import AddressError, ClusterError

CONNECT_S = 10.0
WORKERS_S = 60.0
_SPAWN = "distributed.nanny.pre-spawn-environ"
_PAGES = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
"""Dask's settings that list its HTTP pages. A local cluster has none, since they need no authentication."""


@contextmanager
def connected(address: Local | SchedulerAddress) -> Iterator[Client]:
    """Yield a client of a cluster with at least one worker. A local cluster is started, and stopped after the block.

    Local processes listen only on loopback, authenticate each other with temporary keys, and have no dashboard.

    Raises:
        AddressError: the memory is not a size.
        ClusterError: no scheduler answers, it refuses the connection, or it has no workers.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # `drive` reports these problems in its own words
    if isinstance(address, Local):
        with _local(address) as client:
            yield client
        return
    with _client(address) as client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError as error:
            raise ClusterError(
                f"{address.url}: the scheduler has no workers: start some with `dask worker {address.url} --nthreads 1`"
            ) from error
        yield client


def check_same(client: Client) -> Mapping[str, str]:
    """Check that scheduler and workers have the same software fingerprint as this process; return the fingerprint.

    Raises:
        ClusterError: one of them differs or does not answer; the message names it, and the differences.
    """
    ours = fingerprint()
    try:
        answers = {"scheduler": client.run_on_scheduler(fingerprint)}
        answers |= client.run(fingerprint, on_error="return")
    except Exception as error:
        raise ClusterError(f"the cluster does not report its versions: {error}. Install mplab on it") from error
    for name, theirs in answers.items():
        who = name if name == "scheduler" else f"worker {name}"
        if isinstance(theirs, BaseException):
            raise ClusterError(f"the {who} does not report its versions: {theirs}. Install mplab on it")
        if other := differences(ours, theirs):
            raise ClusterError(f"the {who} has other versions than this process: {other}")
    return ours


@contextmanager
def _local(address: Local) -> Iterator[Client]:
    processes = address.processes or CPU_COUNT
    try:
        memory = parse_bytes(address.memory) if address.memory else MEMORY_LIMIT // processes
    except ValueError as error:
        raise AddressError(f"{address.memory}: not a size of memory. Write it as 2GiB") from error
    threads = {"POLARS_MAX_THREADS": max(1, CPU_COUNT // processes)}
    settings = {_SPAWN: {**dask.config.get(_SPAWN, {}), **threads}, **{routes: [] for routes in _PAGES}}
    with (
        tempfile.TemporaryDirectory(prefix="mplab-cluster-") as folder,
        dask.config.set(settings),
        LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            memory_limit=memory,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={
                "dashboard_address": "127.0.0.1:0"
            },  # the scheduler listens even without a dashboard, by default on a fixed port
            security=Security.temporary(),
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def _client(address: SchedulerAddress) -> Iterator[Client]:
    keys = address.keys
    security = None
    if keys.given:
        security = Security(
            tls_ca_file=str(keys.authority),
            tls_client_cert=str(keys.certificate),
            tls_client_key=str(keys.key),
            require_encryption=True,
        )
    try:
        client = Client(address.url, timeout=CONNECT_S, security=security, set_as_default=False, name="mplab")
    except Exception as error:
        cause = error.__cause__ or error
        why = str(cause) or (
            f"no answer within {CONNECT_S:g} s" if isinstance(cause, TimeoutError) else type(cause).__name__
        )
        raise ClusterError(f"{address.url}: no scheduler answers: {why}. Start one, or use --cluster local") from error
    with client:
        yield client
