"""From a requirement to nodes: what it takes, what that costs, and how far off that may be, by what was measured."""
