"""Labs: the resources an experiment runs on. The virtual lab needs nothing but this machine."""
