"""``python -m mplab.drivers.shaper.restore NAME KIND SETTINGS OWNER``: give back what a dead run held.

Run from the undo journal. KIND is ``router``, ``server`` or ``phone``; SETTINGS the JSON of its entry in the lab file.
"""

import sys

from mplab.base.errors import MplabError
from mplab.drivers.shaper.held import open_shell, state_directory
from mplab.drivers.shaper.tc import guard
from mplab.userfiles.lab import PhoneShellFile, PlaceFile, RouterFile, ServerFile

_KINDS: dict[str, type[PlaceFile]] = {"router": RouterFile, "server": ServerFile, "phone": PhoneShellFile}


def main(argv: list[str]) -> int:
    """Exit code 0 when it is not OWNER's, or no longer."""
    name, kind, text, owner = argv
    settings = _KINDS[kind].model_validate_json(text)
    shell = open_shell(name, settings)
    try:
        shell.connect()
        done = guard.call(shell, state_directory(settings), "restore", owner, check=False)
    except MplabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        shell.close()
    print(done.stderr, file=sys.stderr, end="")
    return 0 if done.exit_code in {0, guard.NOT_OURS} else done.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
