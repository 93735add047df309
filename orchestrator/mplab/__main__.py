"""``python -m mplab`` is ``mplab``."""

from mplab.cli.main import main

if __name__ == "__main__":
    main()
