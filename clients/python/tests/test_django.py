"""Caches of Django (its own and django-redis), and its sessions in them."""

from collections.abc import Iterator

import django
import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import CreateError
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import BaseCache, caches
from django.test.utils import override_settings
from servers import Server

BACKENDS = {"django": "django.core.cache.backends.redis.RedisCache", "django-redis": "django_redis.cache.RedisCache"}

settings.configure(SECRET_KEY="of the tests", SESSION_ENGINE="django.contrib.sessions.backends.cache")
django.setup()


@pytest.fixture(params=BACKENDS)
def cache(server: Server, request: pytest.FixtureRequest) -> Iterator[BaseCache]:
    location = {"BACKEND": BACKENDS[request.param], "LOCATION": server.url(1), "KEY_PREFIX": "site"}
    with override_settings(CACHES={"default": location}):
        yield caches["default"]
        caches["default"].close()


def test_values_and_their_times(cache: BaseCache) -> None:
    cache.set("object", {"name": "apple", "numbers": [1, 2]}, timeout=100)
    assert cache.get("object") == {"name": "apple", "numbers": [1, 2]}
    assert not cache.add("object", "other")
    assert cache.add("new", "value")
    assert cache.get("none", "instead") == "instead"
    assert cache.touch("object", 200)
    assert not cache.touch("none", 200)
    assert cache.has_key("object")
    assert cache.get_or_set("made", lambda: 7) == 7
    cache.set("gone", 1, timeout=0)
    assert cache.get("gone") is None
    assert cache.delete("object")
    assert not cache.delete("object")


def test_counters(cache: BaseCache) -> None:
    cache.set("counter", 10)
    assert cache.incr("counter") == 11
    assert cache.decr("counter", 5) == 6
    with pytest.raises(ValueError, match="none"):
        cache.incr("none")
    assert cache.incr_version("counter") == 2
    assert cache.get("counter", version=2) == 6


def test_many_at_once(cache: BaseCache) -> None:
    values = {f"key-{number}": number for number in range(100)}
    assert cache.set_many(values, timeout=100) in ([], None)
    assert cache.get_many([*values, "none"]) == values
    cache.delete_many(["key-1", "key-2"])
    assert len(cache.get_many(values)) == 98
    cache.clear()
    assert cache.get_many(values) == {}


def test_patterns_times_and_locks_of_django_redis(server: Server) -> None:
    location = {"BACKEND": BACKENDS["django-redis"], "LOCATION": server.url(1)}
    with override_settings(CACHES={"default": location}):
        cache = caches["default"]
        cache.set_many({f"user:{number}": number for number in range(50)}, timeout=100)
        cache.set("other", 1, timeout=None)
        assert 0 < cache.ttl("user:1") <= 100
        assert cache.ttl("other") is None
        assert len(list(cache.iter_keys("user:*", itersize=10))) == 50
        assert cache.delete_pattern("user:*", itersize=10) == 50
        assert cache.keys("*") == ["other"]
        assert cache.expire("other", 100)
        with cache.lock("door", timeout=30):
            assert cache.get("other") == 1
        assert not cache.set("other", 2, nx=True)
        cache.close()


def test_sessions(cache: BaseCache) -> None:
    session = SessionStore()
    session["user"] = "alice"
    session.set_expiry(100)
    session.save()
    first = session.session_key
    assert SessionStore(first)["user"] == "alice"
    with pytest.raises(CreateError):
        session.save(must_create=True)
    session.cycle_key()
    assert not session.exists(first)
    assert SessionStore(session.session_key)["user"] == "alice"
    session.flush()
    assert SessionStore(session.session_key).get("user") is None
