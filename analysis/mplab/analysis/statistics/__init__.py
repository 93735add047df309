"""Summarize scores over cells: intervals, effect sizes, contrasts. Reads no file and draws nothing."""
