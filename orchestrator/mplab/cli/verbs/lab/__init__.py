"""Verbs for the lab and its hardware: check, bring up and use by hand. No verb here starts a run."""
