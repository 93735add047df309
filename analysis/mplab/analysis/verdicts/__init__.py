"""Judge results: claims of papers, budgets, comparison with a baseline, trend, regression gate."""
