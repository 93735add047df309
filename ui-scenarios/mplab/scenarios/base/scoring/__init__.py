"""Compute scores that several scenarios share: of page loads, video playback, uploads, sound and reordering delay.

The module ``scores`` of a scenario imports them. Scores of a single scenario are in its folder; scores that all
scenarios have, e.g. of hand-overs, are in `mplab.analysis.scores`. Nothing in this package runs in a cell.
"""
