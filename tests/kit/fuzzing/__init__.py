"""Fuzzing of services with well-formed requests of hostile content: mutations of real requests, and
campaigns that send them.
"""
