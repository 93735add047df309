"""Run campaigns: several experiments, every night, on all phones, routers and proxies of a laboratory.

Belongs here: starting runs as child processes, judging them, keeping their disk free. Not here: what happens inside a
run (`run`), models of the campaign file and its events (`format`), options and tables (`cli`).
"""
