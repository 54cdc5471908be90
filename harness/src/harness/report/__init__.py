"""Draws what a campaign found: one page without any other file, and an index of the pages."""
