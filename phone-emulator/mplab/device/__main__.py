"""Run ``python -m mplab.device``."""

import sys

from mplab.device.process import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
