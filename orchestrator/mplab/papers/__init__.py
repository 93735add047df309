"""The papers, run again: campaigns of their experiments, compact results of the runs, and the page of all figures.

Belongs here: everything about several papers at once. Not here: the catalogue's files (`userfiles.papers`), judging of
claims (`analysis.verdicts`), execution of campaigns (`campaign`).
"""
