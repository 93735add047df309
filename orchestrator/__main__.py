"""``python -m orchestrator`` is ``mplab``."""

from orchestrator.cli.main import main

if __name__ == "__main__":
    main()
