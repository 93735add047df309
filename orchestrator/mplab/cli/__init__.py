"""The command line: ``mplab VERB``."""
