"""Verbs that plan, start, steer and watch runs and campaigns. Verbs that only read runs are in `results`."""
