"""Lab files: phones, machines that shape their paths, the proxy, internet access, and the lab that a run uses.

Belongs here: the parts of a lab file that all drivers share. Not here: settings of one driver (its package).
"""
