"""redis-py, as programs use it."""

import threading
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import ConstantBackoff, NoBackoff
from redis.exceptions import LockNotOwnedError, NoPermissionError, NoScriptError, ResponseError, WatchError
from redis.retry import Retry
from servers import Server


def test_values_of_all_types(client: redis.Redis) -> None:
    assert client.set("apple", "red", ex=100)
    assert client.set("apple", "green", nx=True) is None
    assert client.set("apple", "green", get=True, keepttl=True) == "red"
    assert 0 < client.ttl("apple") <= 100
    assert client.getex("apple", persist=True) == "green"
    assert client.ttl("apple") == -1
    assert client.mget("apple", "none") == ["green", None]
    assert client.incrbyfloat("number", 1.5) == 1.5
    assert client.hset("hash", mapping={"a": 1, "b": "two"}) == 2
    assert client.hgetall("hash") == {"a": "1", "b": "two"}
    assert client.sadd("set", "x", "y", "x") == 2
    assert client.smembers("set") == {"x", "y"}
    assert client.smismember("set", ["x", "z"]) == [1, 0]
    assert client.rpush("list", 1, 2, 3) == 3
    assert client.lrange("list", 0, -1) == ["1", "2", "3"]
    assert client.lmpop(1, "list", direction="RIGHT", count=2) == ["list", ["3", "2"]]
    assert client.type("hash") == "hash"
    assert client.object("encoding", "number") == "embstr"
    with pytest.raises(ResponseError, match="wrong kind of value"):
        client.incr("list")


def test_scores_are_numbers(client: redis.Redis) -> None:
    assert client.zadd("scores", {"a": 1, "b": 2.5, "c": float("inf")}) == 3
    assert client.zadd("scores", {"a": 5}, gt=True, ch=True) == 1
    assert client.zincrby("scores", -0.5, "b") == 2.0
    assert client.zscore("scores", "c") == float("inf")
    assert client.zscore("scores", "none") is None
    assert client.zmscore("scores", ["a", "none"]) == [5.0, None]
    pairs = client.zrange("scores", 0, -1, withscores=True)
    assert [(member, score) for member, score in pairs] == [("b", 2.0), ("a", 5.0), ("c", float("inf"))]
    assert client.zrangebyscore("scores", "(2", 5) == ["a"]
    assert client.zpopmin("scores", 2)[1:] == pairs[1:2]
    assert client.zrank("scores", "c") == 0


def test_iterators_go_through_everything(client: redis.Redis) -> None:
    names = {f"key {number}" for number in range(1000)}
    with client.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.set(name, "value")
            pipeline.sadd("set", name)
            pipeline.hset("hash", name, "value")
            pipeline.zadd("scores", {name: len(name)})
        pipeline.execute()
    assert set(client.scan_iter("key *", count=50)) == names
    assert set(client.scan_iter(_type="zset")) == {"scores"}
    assert set(client.sscan_iter("set", count=50)) == names
    assert dict(client.hscan_iter("hash", count=50)).keys() == names
    assert dict(client.zscan_iter("scores", count=50)) == {name: float(len(name)) for name in names}


def test_a_pipeline_has_errors_in_their_places(client: redis.Redis) -> None:
    with client.pipeline(transaction=False) as pipeline:
        pipeline.set("text", "value").incr("text").get("text")
        first, second, third = pipeline.execute(raise_on_error=False)
    assert (first, third) == (True, "value")
    assert isinstance(second, ResponseError)


def test_a_transaction_runs_though_a_command_fails(client: redis.Redis) -> None:
    with client.pipeline() as transaction:
        transaction.set("text", "value").incr("text").rpush("list", "a")
        with pytest.raises(ResponseError, match="Command # 2"):
            transaction.execute()
    assert client.lrange("list", 0, -1) == ["a"]


def test_a_transaction_with_an_unknown_command_does_nothing(client: redis.Redis) -> None:
    with client.pipeline() as transaction:
        transaction.set("text", "value").execute_command("NOSUCH", "text")
        with pytest.raises(ResponseError, match="unknown command"):
            transaction.execute()
    assert client.get("text") is None


def test_a_watched_key_that_changes_ends_the_transaction(server: Server, client: redis.Redis) -> None:
    client.set("watched", 1)
    with client.pipeline() as transaction, server.client() as other:
        transaction.watch("watched")
        value = int(transaction.get("watched"))
        other.set("watched", 5)
        transaction.multi()
        transaction.set("watched", value + 1)
        with pytest.raises(WatchError):
            transaction.execute()
    assert client.get("watched") == "5"


def test_transactions_of_many_threads_lose_nothing(server: Server, client: redis.Redis) -> None:
    def count() -> None:
        with server.client() as own:
            for _ in range(25):
                own.transaction(lambda pipeline: add_one(own, pipeline), "counter")

    def add_one(own: redis.Redis, pipeline: redis.client.Pipeline) -> None:
        value = int(pipeline.get("counter") or 0)
        pipeline.multi()
        pipeline.set("counter", value + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("counter") == "100"


def test_subscribers_get_messages_of_channels_and_patterns(client: redis.Redis) -> None:
    with client.pubsub() as subscriber:
        subscriber.subscribe("news")
        subscriber.psubscribe("weather.*")
        confirmations = [subscriber.get_message(timeout=10) for _ in range(2)]
        assert [(note["type"], note["data"]) for note in confirmations] == [("subscribe", 1), ("psubscribe", 2)]
        assert client.publish("news", "one") == 1
        assert client.publish("weather.rain", "two") == 1
        assert client.pubsub_numsub("news") == [("news", 1)]
        assert client.pubsub_numpat() == 1
        messages = [subscriber.get_message(timeout=10) for _ in range(2)]
        assert messages == [
            {"type": "message", "pattern": None, "channel": "news", "data": "one"},
            {"type": "pmessage", "pattern": "weather.*", "channel": "weather.rain", "data": "two"},
        ]
        subscriber.unsubscribe()
        assert subscriber.get_message(timeout=10)["type"] == "unsubscribe"
        assert client.publish("news", "three") == 0


def test_a_thread_that_listens(client: redis.Redis) -> None:
    arrived = threading.Event()
    with client.pubsub(ignore_subscribe_messages=True) as subscriber:
        subscriber.subscribe(news=lambda message: arrived.set())
        thread = subscriber.run_in_thread(sleep_time=0.1)
        while client.publish("news", "one") == 0:
            pass
        assert arrived.wait(10)
        thread.stop()
        thread.join()


def test_a_registered_script_is_loaded_when_it_is_missing(client: redis.Redis) -> None:
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1]) * 2")
    assert add(keys=["number"], args=[5]) == 10
    client.script_flush()
    with pytest.raises(NoScriptError):
        client.evalsha(add.sha, 1, "number", 1)
    assert add(keys=["number"], args=[5]) == 20
    client.script_flush()
    with client.pipeline() as pipeline:
        add(keys=["number"], args=[1], client=pipeline)
        pipeline.get("number")
        assert pipeline.execute() == [22, "11"]
    with pytest.raises(ResponseError, match="my own error"):
        client.eval("return redis.error_reply('my own error')", 0)


def test_a_lock_has_one_owner(server: Server, client: redis.Redis) -> None:
    lock = client.lock("door", timeout=30)
    assert lock.acquire()
    other = client.lock("door", timeout=30)
    assert not other.acquire(blocking=False)
    assert lock.locked()
    assert lock.extend(30)
    assert client.pttl("door") > 30_000
    assert lock.reacquire()
    assert client.pttl("door") <= 30_000
    client.set("door", "stolen")
    with pytest.raises(LockNotOwnedError):
        lock.release()
    client.delete("door")
    waiting = threading.Thread(target=lambda: other.acquire(blocking_timeout=30) and client.rpush("entered", "other"))
    with client.lock("door", timeout=30):
        waiting.start()
        client.rpush("entered", "first")
    waiting.join()
    assert client.lrange("entered", 0, -1) == ["first", "other"]


def test_who_waits_for_an_element_gets_it(server: Server, client: redis.Redis) -> None:
    assert client.blpop("queue", timeout=0.05) is None
    got = []

    def wait() -> None:
        with server.client(decode_responses=True) as own:
            got.append(own.blpop(["other", "queue"], timeout=30))
            got.append(own.bzpopmin("scores", timeout=30))

    thread = threading.Thread(target=wait)
    thread.start()
    client.rpush("queue", "element")
    client.zadd("scores", {"member": 1.5})
    thread.join()
    assert [tuple(answer) for answer in got] == [("queue", "element"), ("scores", "member", 1.5)]


def test_databases_are_apart(server: Server, client: redis.Redis) -> None:
    client.set("key", "of zero")
    with server.client(db=3) as third:
        assert third.get("key") is None
        third.set("other", "of three")
        assert third.dbsize() == 1
        third.flushdb()
    assert client.dbsize() == 1


def test_what_is_known_about_clients_and_server(client: redis.Redis) -> None:
    client.client_setname("tester")
    assert client.client_getname() == "tester"
    assert client.client_info()["name"] == "tester"
    assert [row["name"] for row in client.client_list() if row["id"] == str(client.client_id())] == ["tester"]
    info = client.info()
    assert (info["redis_version"], info["role"], info["loading"]) == ("7.0.15", "master", 0)
    assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert client.command_count() > 100
    assert client.time()[0] > 0


def test_users_with_rights(server: Server, client: redis.Redis) -> None:
    client.acl_setuser("alice", enabled=True, passwords=["+open sesame"], categories=["+@all"], keys=["orders:*"])
    try:
        with server.client(username="alice", password="open sesame") as alice:
            assert alice.acl_whoami() in ("alice", b"alice")
            assert alice.set("orders:1", "pen")
            with pytest.raises(NoPermissionError):
                alice.get("secret")
        with (
            server.client(username="alice", password="wrong", retry=Retry(NoBackoff(), 0)) as wrong,
            pytest.raises(redis.exceptions.AuthenticationError),
        ):
            wrong.ping()
    finally:
        client.acl_deluser("alice")


@pytest.fixture
def patient(server: Server) -> Iterator[redis.Redis]:
    """A client that tries again when its connection is gone."""
    retry = Retry(ConstantBackoff(0.05), 100)
    with server.client(retry=retry, decode_responses=True) as client:
        yield client


def test_a_client_goes_on_after_its_connection_was_killed(server: Server, patient: redis.Redis) -> None:
    patient.set("key", "value")
    with server.client() as other:
        other.client_kill_filter(_id=str(patient.client_id()))
    assert patient.get("key") == "value"


def test_a_client_goes_on_after_a_restart(server: Server, patient: redis.Redis) -> None:
    patient.set("key", "value")
    with patient.pubsub(ignore_subscribe_messages=True) as subscriber:
        subscriber.subscribe("news")
        assert subscriber.get_message(timeout=10) is None
        server.stop()
        server.start()
        assert patient.get("key") == "value"
        # It subscribes again when it finds its connection gone.
        assert subscriber.get_message(timeout=10) is None
        assert patient.publish("news", "one") == 1
        assert subscriber.get_message(timeout=10)["data"] == "one"
