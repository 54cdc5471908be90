"""The stores that YCSB is run against, one file each."""
