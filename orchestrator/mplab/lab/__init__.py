"""Open labs: the resources that an experiment runs on. The virtual lab needs only this machine."""
