"""Fuzzing of services: mutations of real requests, and campaigns that send them.
Tests that run campaigns do not belong here."""
