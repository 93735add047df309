"""Run one cell: its steps, its evidence, its verdict."""
