"""The answer of each kind of experiment, for the first screen of its report."""
