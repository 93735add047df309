"""The scenario `dailymotion`: see README.md."""
