"""The analysis of many runs, spread over the processes of a Dask cluster (docs/cluster.md).

`store` says where runs are: a folder, or what fsspec can reach; `publish` puts results there, each file whole. `same`
tells programs that would make other bytes; `work` is what a worker does: the stages of
`mplab.analysis.pipeline` in a folder of its own. `address` and `connect` lead to a cluster, `drive` gives it the work.
Nothing imports this package unless a cluster is asked for: it needs the extra ``cluster``.
"""
