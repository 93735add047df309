"""The verbs: one package for each panel of ``mplab --help``.

To add a verb, add its module to one of them (`mplab.cli.verb_loader` has the rules) and its test.
"""

PANELS = {
    "experiments": "Run",
    "results": "Results",
    "share": "Share",
    "lab": "Lab and hardware",
    "parts": "Parts of experiments",
}
"""Package → title of its panel, in the order of the help."""

ALIASES = {"nightly": "experiments.campaign"}
"""Earlier name of a verb → its module. These names still work, but no help or completion lists them."""
