"""Figures of the documents whose evaluations the campaigns repeat, as printed there, to be drawn beside ours. The
hardware was another each time."""

from types import MappingProxyType

# T. Endo, H. Al-Edaily, L. Hashem, K. Hiwada: Development and Evaluation of NoSQL DB AIODB for SSDs with Asynchronous
# IO Library. One million pairs of 8 and 4096 bytes.
AIODB_HARDWARE = "i5-6500, 64 GB, Optane 900P"
# Figure 2: gets in flight to gets per second.
AIODB_PER_S = MappingProxyType({64: 370_000.0, 1024: 375_000.0})
# What fio reached there.
AIODB_FIO_PER_S = 377_000.0
# Figure 1: bytes copied to gets per second of LMDB in memory. Of 1024 bytes the text says only that the rate is about
# that of AIODB when saturated.
AIODB_LMDB_PER_S = MappingProxyType({0: 1_000_000.0, 1024: 370_000.0, 4096: 256_000.0})

# Slides and article on okuyama and Riak: four nodes without replication, inserts of about 25 bytes each for key and
# value, from YCSB. Clients, and the most inserts per second; of the cases on disk the text does not say at how many
# clients: it was about the same at all.
OKUYAMA_RIAK_HARDWARE = "4 nodes of i5-520, 4 GB, a disk of 5400 rpm"
ON_DISK_PER_S = MappingProxyType({"okuyama": (100, 84.0), "Riak": (100, 220.0)})
IN_MEMORY_PER_S = MappingProxyType({"okuyama": (30, 24_096.0), "Riak": (300, 9_211.0)})

# The MyCassandra blog: seconds by number of rows. Of overwriting it gives one figure for writing and reading.
MYCASSANDRA_NOTE = "its engine over MySQL, and Cassandra 0.x with memtables of 128 MB and none"
MYCASSANDRA_SECONDS = MappingProxyType(
    {
        "put": {
            "Cassandra, 128 MB": {1_000: 1.63, 10_000: 15.15, 50_000: 71.94, 100_000: 141.76},
            "Cassandra, none": {1_000: 5.03, 10_000: 44.70, 50_000: 106.95, 100_000: 203.20},
            "MyCassandra": {1_000: 1.61, 10_000: 14.82, 50_000: 70.49, 100_000: 136.72},
        },
        "get": {
            "Cassandra, 128 MB": {1_000: 0.53, 10_000: 2.36, 50_000: 8.76, 100_000: 16.86},
            "Cassandra, none": {1_000: 0.85, 10_000: 3.87, 50_000: 17.36, 100_000: 29.96},
            "MyCassandra": {1_000: 0.69, 10_000: 4.03, 50_000: 17.21, 100_000: 32.89},
        },
        "overwrite": {
            "Cassandra, 128 MB": {1_000: 6.34, 10_000: 50.65},
            "Cassandra, none": {1_000: 16.90, 10_000: 100.06},
            "MyCassandra": {1_000: 7.17, 10_000: 56.44},
        },
    }
)
