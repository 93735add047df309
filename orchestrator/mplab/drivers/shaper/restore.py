"""Release a machine held by a dead run: ``python -m mplab.drivers.shaper.restore LABEL KIND SETTINGS TOKEN``.

The undo journal contains such command lines. KIND is the name of a driver, SETTINGS the JSON of the machine's entry in
the lab file, TOKEN the name under which the run held the machine (`Owner.token`).
"""

import sys

from pydantic import BaseModel

from mplab.base.errors import MplabError
from mplab.base.programs import IMPORT_PATH
from mplab.drivers.shaper.driver import machine_driver


def restore_argv(label: str, kind: str, settings: BaseModel) -> list[str]:
    """Return a command line that releases a machine from another process; the caller must append the hold's name.

    Args:
        label: name of the machine, for messages.
        kind: name of its driver.
        settings: entry of the machine in the lab file.
    """
    return [
        *("env", f"PYTHONPATH={IMPORT_PATH}", sys.executable, "-m", "mplab.drivers.shaper.restore"),
        *(label, kind, settings.model_dump_json()),
    ]


def main(argv: list[str]) -> int:
    """Release the machine that `argv` names: LABEL, KIND, SETTINGS, TOKEN; return the exit code.

    The exit code is also 0 when the dead run no longer held the machine.
    """
    label, kind, text, token = argv
    try:
        driver = machine_driver(kind)
        driver.restore(label, driver.settings.model_validate_json(text), token)
    except MplabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
