"""Counter-based random numbers and sampling with them: alias tables, choice of partitions.

Code that knows graphs does not belong here.
"""
