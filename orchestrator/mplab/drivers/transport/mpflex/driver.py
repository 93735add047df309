"""Driver of ``mpflex``. Its variants are the schedulers; the files that its options name are policies."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

from mplab.base.programs import MPFLEX
from mplab.drivers.transport import Transport, TransportDriver, options_as
from mplab.drivers.transport.mpflex.options import POLICIES_DIR, MpflexOptions
from mplab.drivers.transport.mpflex.transport import Mpflex
from mplab.format.palette import BROWN, GREY, OLIVE, PURPLE, SKY, TEAL, VIOLET
from mplab.userfiles.experiments.transport import TransportStyle

LOOKS: Mapping[str, TransportStyle] = {
    "earliest": TransportStyle("MPFlex", PURPLE, "^"),
    "minrtt": TransportStyle("MPFlex min-RTT", VIOLET, "v"),
    "txdelay": TransportStyle("MPFlex TxDelay", SKY, "P"),
    "roundrobin": TransportStyle("MPFlex round robin", GREY, "X"),
    "redundant": TransportStyle("MPFlex redundant", BROWN, "<"),
    "backup": TransportStyle("MPFlex backup", TEAL, ">"),
    "single": TransportStyle("MPFlex single path", OLIVE, "h"),
}
"""Name, colour and marker of each scheduler in figures."""


class MpflexDriver(TransportDriver):
    """Driver that opens `Mpflex`, the transport over an MPFlex session."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """Return an `Mpflex` for one phone; see `TransportDriver`."""
        return Mpflex(options_as(MpflexOptions, options), interfaces, files)

    def problems_in(self, files: Mapping[str, bytes]) -> list[str]:
        """Return the problems that ``mpflex policy check`` finds in policies; [] if `mpflex` is not installed."""
        if not files or (program := MPFLEX.find()) is None:
            return []
        problems: list[str] = []
        with TemporaryDirectory(prefix="mplab-policies-") as folder:
            for path, content in files.items():
                (Path(folder) / path).parent.mkdir(exist_ok=True)
                (Path(folder) / path).write_bytes(content)
                command = [str(program), "policy", "check", path]
                result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
                if result.returncode:
                    problems += result.stderr.strip().splitlines()
        return problems


DRIVER = MpflexDriver(
    "mpflex",
    "MPFlex",
    PURPLE,
    "^",
    MpflexOptions,
    variant_option="scheduler",
    variants=LOOKS,
    files={"policy": POLICIES_DIR},
    sessions=True,
)
