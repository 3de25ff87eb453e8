"""Counter-based random numbers, and draws that follow from them: alias tables, partition choice,
successive draws.

Nothing here knows a graph.
"""
