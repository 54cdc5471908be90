"""Figures in documents: generated from what is published, and checked against it."""
