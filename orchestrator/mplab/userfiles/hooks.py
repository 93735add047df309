"""Commands of the host around a run and its cells, as an experiment file has them."""

from pydantic import ConfigDict

from mplab.format.hooks import Hooks


class HooksFile(Hooks):
    """Commands that this host runs around the run and its cells; no shell reads them."""

    model_config = ConfigDict(extra="forbid")
