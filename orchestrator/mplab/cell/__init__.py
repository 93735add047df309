"""The life of one cell: its steps, its evidence, its verdict."""
