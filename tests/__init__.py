"""Asterism's tests, floor by floor: unit, contract, property, law, integration, compose, house."""
