"""Analyse many runs on the processes of a Dask cluster (docs/cluster.md).

`store` reads and writes runs in a local folder or one that fsspec can reach, and publishes results there, each file
atomically. `same` compares the software versions of processes, since other versions could write other bytes. `work`
has the functions of a worker: the stages of `mplab.analysis.pipeline`, each in a temporary folder. `address` and
`connect` open a cluster, `drive` submits the work.
This package needs the extra ``cluster``, and is imported only for an analysis with ``--cluster``.
"""
