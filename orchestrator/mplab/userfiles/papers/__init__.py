"""Catalogue of papers: their figures, tables and numbers, and what mplab has for each of them."""
