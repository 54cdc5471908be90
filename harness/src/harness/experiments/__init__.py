"""The kinds of experiments, one file each. A new kind is a file with a class and its line in `registry`."""
