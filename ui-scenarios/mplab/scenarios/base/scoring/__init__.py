"""Scores that several apps share: page loads, video playback, uploads, sound, and the reordering delay of a connection.

The ``scores`` module of a scenario imports them. Scores of a single app are in its folder. Scores of every scenario,
e.g. of hand-overs, are in `mplab.analysis.scores`. Nothing here runs in a cell.
"""
