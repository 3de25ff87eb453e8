"""Evaluation of filters and expressions over arrays.

Syntax belongs to `asterism_model`.
"""
