"""The verbs: one package for each panel of ``mplab --help``."""
