"""Parse the command line ``mplab VERB``, call the layers below, print results."""
