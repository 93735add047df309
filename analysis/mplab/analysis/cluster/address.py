"""Parse the argument of ``--cluster``: processes of this machine, or an existing scheduler."""

import re
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.errors import AddressError

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,2}))?")
_SCHEDULER = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+):([0-9]{1,5})")
_PORTS = range(1, 1 << 16)


@dataclass(frozen=True)
class Keys:
    """PEM files for mutual TLS between a cluster and its client: authority, certificate and key, or none of them."""

    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def given(self) -> tuple[Path, ...]:
        """Return the paths of the PEM files that are set."""
        return tuple(path for path in (self.authority, self.certificate, self.key) if path is not None)


@dataclass(frozen=True)
class Local:
    """Processes of this machine, started only for this analysis.

    ``processes`` 0: one for each processor. ``memory`` is the limit of each process in Dask's notation (``2 GiB``);
    "": an equal share of this machine's memory.
    """

    processes: int = 0
    memory: str = ""


@dataclass(frozen=True)
class SchedulerAddress:
    """The address of an existing Dask scheduler: ``tcp://host:port``, or ``tls://host:port`` with its keys."""

    url: str
    keys: Keys = Keys()


def parse(text: str, keys: Keys = Keys(), memory: str = "") -> Local | SchedulerAddress:
    """Parse the argument of ``--cluster``, the address of a cluster.

    Args:
        text: ``local``, ``local:N``, ``tcp://host:port`` or ``tls://host:port``.
        keys: PEM files for ``tls://``.
        memory: limit of each process, for ``local``.

    Raises:
        AddressError: the address has another form, ``keys`` or ``memory`` are not allowed for it, or keys that it
            needs or a key file are missing.
    """
    if local := _LOCAL.fullmatch(text):
        if keys.given:
            raise AddressError(f"--cluster {text}: keys are only for tls://. Remove --tls-ca, --tls-cert and --tls-key")
        return Local(int(local[1] or 0), memory)
    scheduler = _SCHEDULER.fullmatch(text)
    if scheduler is None or int(scheduler[3]) not in _PORTS:
        raise AddressError(f"--cluster {text}: not local, local:N, tcp://HOST:PORT or tls://HOST:PORT")
    if memory:
        raise AddressError(
            f"--cluster {text}: --memory is only for local. Set `dask worker --memory-limit` on the workers"
        )
    encrypted = scheduler[1] == "tls"
    if encrypted != (len(keys.given) == 3) or (keys.given and not encrypted):
        needs = "needs" if encrypted else "is not encrypted: it does not go with"
        raise AddressError(f"--cluster {text}: {needs} --tls-ca, --tls-cert and --tls-key")
    if missing := [str(path) for path in keys.given if not path.is_file()]:
        raise AddressError(f"--cluster {text}: there is no file {', '.join(missing)}")
    return SchedulerAddress(text, keys)
