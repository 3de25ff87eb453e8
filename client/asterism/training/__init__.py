"""Epochs of batches and message flow for training loops of any framework.
Framework adapters (`torch`, `pyg`, `dgl`, `tensorflow`) have their own modules."""
