"""Loads of graphs in memory that other libraries hold: each reader makes tables of arrays.
Readers import no other library: an object is recognized only if its library is imported already."""

from asterism.objects.loading import LoadedGraph, load_graph

__all__ = ["LoadedGraph", "load_graph"]
