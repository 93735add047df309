"""From a run directory to scores, statistics, figures and a report. Reads nothing else."""
