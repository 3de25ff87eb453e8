"""Counter-based random numbers and sampling from them: alias tables, partition choice, successive.
Nothing here knows a graph."""
