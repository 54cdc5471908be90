"""Cassandra's consistency levels."""

LEVELS = ("ONE", "TWO", "THREE", "QUORUM", "ALL")


def replicas(level: str, replication: int) -> int:
    """How many replicas must answer."""
    return {"ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": replication // 2 + 1, "ALL": replication}[level]


def is_strong(level: str, replication: int) -> bool:
    """Whether a read meets every write of the same level: R + W > N."""
    return 2 * replicas(level, replication) > replication
