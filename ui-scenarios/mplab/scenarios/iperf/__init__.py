"""The scenario `iperf`: see README.md."""
