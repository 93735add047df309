"""Open labs: phone, shapers, proxy and origin that an experiment runs on. The virtual lab needs only this machine."""
