"""Verbs that list and try the parts of experiments: scenarios, links, transports, plug-ins."""
