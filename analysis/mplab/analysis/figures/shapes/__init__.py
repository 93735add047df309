"""Define the shapes of trace figures, such as box plots; a figure selects the data, and its shape draws them."""
