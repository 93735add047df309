"""Write the report of a run (page, data files, ``summary.json``), and the trend page of an experiment."""
