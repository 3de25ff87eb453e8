"""Graphs of other libraries, in memory: read as tables of arrays and loaded like files. Needs
nothing beyond the client.

A reader knows one library by its objects, and never imports it: who has such an object has imported
it. `Client.load_graph` calls in."""

from asterism.objects.loading import LoadedGraph, load_graph

__all__ = ["LoadedGraph", "load_graph"]
