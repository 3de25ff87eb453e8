"""Loading of graphs that other libraries hold in memory; readers make tables of arrays.

Readers import no other library: an object is recognized only if its library is already imported.
"""

from asterism.objects.loading import LoadedGraph, load_graph

__all__ = ["LoadedGraph", "load_graph"]
