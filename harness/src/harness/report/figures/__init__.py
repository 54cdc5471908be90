"""The figures of each kind of experiment, in reading order."""
