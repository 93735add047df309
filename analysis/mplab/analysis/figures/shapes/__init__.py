"""Shapes of trace figures: a figure selects the data, and its shape draws them."""
