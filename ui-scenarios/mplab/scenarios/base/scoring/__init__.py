"""Scores that several scenarios share: page loads, video playback, uploads, sound, waiting for the other side.

A scenario's `scores` module imports what it needs from here. Scores of one scenario only are in its own folder; scores
that need no scenario, as bytes per network, are in `mplab.analysis.scores`.
"""
