"""``python -m orchestrator.device``."""

import sys

from orchestrator.device.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
