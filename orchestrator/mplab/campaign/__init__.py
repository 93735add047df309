"""Campaigns: several experiments, night after night, over all phones, routers and proxies of a laboratory."""
