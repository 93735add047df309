"""Throughput by iperf3."""
