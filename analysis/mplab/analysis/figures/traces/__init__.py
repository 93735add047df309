"""Draw figures from mptrace's tables; docs/figures.md lists the papers' figures that they reproduce."""
