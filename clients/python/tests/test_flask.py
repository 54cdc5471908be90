"""Sessions of Flask-Session, Flask-Caching, and cachelib."""

from collections.abc import Iterator
from itertools import count

import pytest
import redis
from cachelib import RedisCache
from flask import Flask, session
from flask_caching import Cache
from flask_session import Session
from servers import Server


@pytest.fixture
def connection(server: Server) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


def test_sessions(connection: redis.Redis) -> None:
    app = Flask(__name__)
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=connection, PERMANENT_SESSION_LIFETIME=100)
    Session(app)

    @app.get("/visits")
    def visits() -> str:
        session["visits"] = session.get("visits", 0) + 1
        return str(session["visits"])

    @app.get("/leave")
    def leave() -> str:
        session.clear()
        return "bye"

    alice, bob = app.test_client(), app.test_client()
    assert [alice.get("/visits").text, bob.get("/visits").text, alice.get("/visits").text] == ["1", "1", "2"]
    keys = connection.keys("session:*")
    assert len(keys) == 2
    assert all(0 < connection.ttl(key) <= 100 for key in keys)
    alice.get("/leave")
    assert len(connection.keys("session:*")) == 1
    assert alice.get("/visits").text == "1"


def test_cached_functions(server: Server) -> None:
    app = Flask(__name__)
    cache = Cache(
        app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": server.url(), "CACHE_KEY_PREFIX": "site:"}
    )
    calls = count(1)

    @cache.memoize(timeout=100)
    def slow(name: str) -> tuple[str, int]:
        return name, next(calls)

    with app.app_context():
        assert [slow("a"), slow("b"), slow("a")] == [("a", 1), ("b", 2), ("a", 1)]
        cache.delete_memoized(slow, "a")
        assert [slow("a"), slow("b")] == [("a", 3), ("b", 2)]
        cache.delete_memoized(slow)
        assert slow("b") == ("b", 4)
        cache.set_many({"x": 1, "y": None})
        assert cache.get_many("x", "y", "z") == [1, None, None]
        cache.clear()
        assert cache.get("x") is None


def test_cachelib(connection: redis.Redis) -> None:
    cache = RedisCache(connection, key_prefix="cache:", default_timeout=100)
    assert cache.set("object", {"a": [1, 2]})
    assert cache.get("object") == {"a": [1, 2]}
    assert not cache.add("object", 1)
    assert cache.inc("counter", 5) == 5
    assert cache.dec("counter", 2) == 3
    assert cache.set_many({"a": 1, "b": 2}) == ["a", "b"]
    assert cache.get_dict("a", "b", "none") == {"a": 1, "b": 2, "none": None}
    assert cache.has("a")
    assert cache.delete_many("a", "b") == ["a", "b"]
    assert cache.clear()
    assert connection.keys("cache:*") == []
