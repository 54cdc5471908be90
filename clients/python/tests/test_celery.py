"""Celery and kombu: the server as broker and as backend of results, with a worker in this process."""

import gc
from collections.abc import Iterator

import pytest
from celery import Celery, chain, chord, group
from celery.contrib.testing.worker import start_worker
from celery.exceptions import TaskRevokedError
from kombu import Connection, Exchange, Queue
from servers import Server


@pytest.fixture(scope="module")
def app(running: Server) -> Iterator[Celery]:
    with running.client() as client:
        client.flushall()
    app = Celery("tests", broker=running.url(1), backend=running.url(2))
    app.conf.update(task_track_started=True, worker_hijack_root_logger=False)
    yield app
    # A result says when it is no longer wanted: not later than the server is there.
    gc.collect()
    app.close()


@pytest.fixture(scope="module")
def tasks(app: Celery) -> Iterator[dict[str, object]]:
    attempts = []

    @app.task(shared=False)
    def add(a: int, b: int) -> int:
        return a + b

    @app.task(shared=False)
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(shared=False, bind=True, max_retries=3)
    def fails_at_first(self) -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise self.retry(countdown=0)
        return "done"

    @app.task(shared=False)
    def fails() -> None:
        raise ValueError("never")

    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, shutdown_timeout=60):
        yield {"add": add, "total": total, "fails_at_first": fails_at_first, "fails": fails}


def test_results_of_tasks(tasks: dict) -> None:
    add = tasks["add"]
    assert [result.get(timeout=60) for result in [add.delay(number, 1) for number in range(20)]] == list(range(1, 21))
    with pytest.raises(ValueError, match="never"):
        tasks["fails"].delay().get(timeout=60)
    result = add.delay(1, 1)
    assert result.get(timeout=60) == 2
    assert result.state == "SUCCESS"
    result.forget()
    assert result.state == "PENDING"


def test_groups_chains_and_chords(tasks: dict) -> None:
    add, total = tasks["add"], tasks["total"]
    assert group(add.s(number, number) for number in range(5))().get(timeout=60) == [0, 2, 4, 6, 8]
    assert chain(add.s(1, 2), add.s(10), add.s(100))().get(timeout=60) == 113
    assert chord((add.s(number, 1) for number in range(10)), total.s())().get(timeout=60) == 55


def test_retries_and_countdowns(tasks: dict) -> None:
    assert tasks["fails_at_first"].delay().get(timeout=60) == "done"
    assert tasks["add"].apply_async((1, 2), countdown=0.2).get(timeout=60) == 3


def test_workers_are_told_and_asked(app: Celery, tasks: dict) -> None:
    assert [answer for worker in app.control.ping(timeout=30, limit=1) for answer in worker.values()] == [
        {"ok": "pong"}
    ]
    (registered,) = app.control.inspect(timeout=30, limit=1).registered().values()
    assert any(name.endswith("total") for name in registered)
    revoked = tasks["add"].apply_async((1, 2), countdown=1)
    app.control.revoke(revoked.id, reply=True, timeout=30, limit=1)
    with pytest.raises(TaskRevokedError):
        revoked.get(timeout=60)


def test_messages_of_kombu(server: Server) -> None:
    with Connection(server.url(3)) as connection:
        with connection.SimpleQueue("letters") as letters:
            letters.put({"number": 1}, priority=5)
            letters.put({"number": 2}, priority=5)
            assert letters.qsize() == 2
            first = letters.get(timeout=10)
            assert first.payload == {"number": 1}
            first.requeue()
            got = [letters.get(timeout=10) for _ in range(2)]
            assert sorted(message.payload["number"] for message in got) == [1, 2]
            for message in got:
                message.ack()
            with pytest.raises(letters.Empty):
                letters.get(block=False)
        topics = Exchange("topics", type="topic")
        queues = [Queue("rain", topics, routing_key="weather.rain"), Queue("all", topics, routing_key="weather.#")]
        producer = connection.Producer()
        for key in ("weather.rain", "weather.sun"):
            producer.publish({"key": key}, exchange=topics, routing_key=key, declare=queues)
        counts = [queue(connection.default_channel).queue_declare(passive=True).message_count for queue in queues]
        assert counts == [1, 2]
