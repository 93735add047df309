"""Judge the results of runs: claims of papers, budgets, comparison with a baseline, trend, regression gate."""
