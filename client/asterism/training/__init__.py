"""Batches and message flow for training loops, without a framework.

Framework modules (`torch`, `pyg`, `dgl`) build on this one.
"""
