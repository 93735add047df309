"""Run campaigns: several experiments, every night, on all phones, routers and proxies of a laboratory."""
