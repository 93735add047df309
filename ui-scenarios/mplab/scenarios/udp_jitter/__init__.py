"""The scenario `udp-jitter`: see README.md."""
