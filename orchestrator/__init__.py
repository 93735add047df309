"""What runs an experiment: spec → plan → run → cell → record, and the devices they drive."""

__version__ = "0.1.0"
