"""Plug-ins for mplab: one package for each kind."""
