"""The shapes that trace figures are made of: a figure says what is shown, its shape how."""
