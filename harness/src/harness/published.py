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
