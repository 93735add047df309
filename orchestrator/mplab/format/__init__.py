"""Models of the files in a run directory, and values that they share with users' files.

Belongs here: one model for each file that mplab writes, upgrades of older files, units, the campaign file. Not here:
other files that people write (`userfiles`), code that computes the content of files.
"""
