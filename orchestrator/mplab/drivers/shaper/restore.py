"""Release a machine whose holder has died: ``python -m mplab.drivers.shaper.restore LABEL KIND SETTINGS TOKEN``.

The undo journal contains such command lines. LABEL is the machine's name for messages, KIND is the name of its driver,
and SETTINGS is the JSON of its entry in the lab file. TOKEN is the name under which a run or a user's command held the
machine (`Owner.token`).
"""

import sys

from pydantic import BaseModel

from mplab.base.errors import MplabError
from mplab.base.programs import IMPORT_PATH
from mplab.drivers.shaper.driver import machine_driver


def restore_argv(label: str, kind: str, settings: BaseModel) -> list[str]:
    """Return a command line by which another process releases a machine; the caller must append the hold's name.

    Args:
        label: name of the machine, for messages.
        kind: name of the machine's driver.
        settings: entry of the machine in the lab file.
    """
    return [
        *("env", f"PYTHONPATH={IMPORT_PATH}", sys.executable, "-m", "mplab.drivers.shaper.restore"),
        *(label, kind, settings.model_dump_json()),
    ]


def main(argv: list[str]) -> int:
    """Release a machine whose holder has died; `argv` is LABEL, KIND, SETTINGS and TOKEN. Return the exit code.

    The exit code is also 0 if the hold named TOKEN has already ended.
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
