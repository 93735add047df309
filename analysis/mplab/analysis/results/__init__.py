"""Load many runs as polars frames and as one DuckDB file."""
