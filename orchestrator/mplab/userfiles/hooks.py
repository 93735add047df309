"""Hooks of an experiment file: commands that the host runs around a run and its cells."""

from pydantic import ConfigDict

from mplab.format.hooks import Hooks


class HooksFile(Hooks):
    """Commands that this host runs, without a shell, around the run and its cells."""

    model_config = ConfigDict(extra="forbid")
