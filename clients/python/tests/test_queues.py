"""Queues of tasks: huey, Dramatiq and RQ, each with a worker in this process."""

import threading
from collections.abc import Iterator

import dramatiq
import pytest
import rq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitsBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend
from huey import Huey, PriorityRedisExpireHuey, RedisHuey
from huey.exceptions import TaskException, TaskLockedException
from servers import Server

# The queue is a list or a sorted set; results are a hash or keys that expire.
HUEYS = [RedisHuey, PriorityRedisExpireHuey]


@pytest.fixture(params=HUEYS, ids=lambda kind: kind.__name__)
def huey(server: Server, request: pytest.FixtureRequest) -> Iterator[Huey]:
    huey = request.param("tests", url=server.url(), blocking=True)
    yield huey
    huey.storage.conn.connection_pool.disconnect()


@pytest.fixture
def consumed(huey: Huey) -> Iterator[Huey]:
    consumer = huey.create_consumer(workers=2, periodic=False, scheduler_interval=1)
    consumer.start()
    yield huey
    consumer.stop(graceful=True)


def test_huey_runs_tasks(consumed: Huey) -> None:
    @consumed.task()
    def add(a: int, b: int) -> int:
        return a + b

    assert [result.get(blocking=True, timeout=30) for result in [add(n, 1) for n in range(20)]] == list(range(1, 21))
    chain = consumed.enqueue(add.s(1, 2).then(add, 10).then(add, 100))
    assert chain.get(blocking=True, timeout=30) == [3, 13, 113]


def test_huey_tries_again_and_tells_failures(consumed: Huey) -> None:
    attempts = []
    done = threading.Event()

    @consumed.task(retries=2)
    def fails_at_first() -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise RuntimeError("not yet")
        done.set()

    @consumed.task()
    def fails() -> None:
        raise RuntimeError("never")

    with pytest.raises(TaskException, match="never"):
        fails().get(blocking=True, timeout=30)
    fails_at_first()
    assert done.wait(30)


def test_huey_keeps_what_is_to_come(huey: Huey) -> None:
    @huey.task()
    def add(a: int, b: int) -> int:
        return a + b

    later = add.schedule((1, 2), delay=3600)
    now = add(3, 4)
    add(5, 6).revoke()
    assert len(huey) == 3
    while huey.pending_count():
        huey.execute(huey.dequeue())
    assert [task.id for task in huey.scheduled()] == [later.id]
    assert now.get() == 7
    with huey.lock_task("door"), pytest.raises(TaskLockedException), huey.lock_task("door"):
        pass
    huey.flush()
    assert (huey.pending_count(), huey.scheduled_count(), huey.result_count()) == (0, 0, 0)


@pytest.fixture
def broker(server: Server) -> Iterator[RedisBroker]:
    broker = RedisBroker(url=server.url())
    broker.add_middleware(Results(backend=RedisBackend(url=server.url())))
    dramatiq.set_broker(broker)
    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=4)
    worker.start()
    yield broker
    worker.stop()
    broker.close()


def test_dramatiq_runs_actors(broker: RedisBroker) -> None:
    @dramatiq.actor(store_results=True)
    def add(a: int, b: int) -> int:
        return a + b

    messages = [add.send(number, 1) for number in range(50)]
    assert [message.get_result(block=True, timeout=30_000) for message in messages] == list(range(1, 51))
    assert add.send_with_options(args=(1, 2), delay=100).get_result(block=True, timeout=30_000) == 3
    chain = dramatiq.pipeline([add.message(1, 2), add.message(10)]).run()
    assert chain.get_result(block=True, timeout=30_000) == 13
    together = dramatiq.group(add.message(number, number) for number in range(5)).run()
    assert sorted(together.get_results(block=True, timeout=30_000)) == [0, 2, 4, 6, 8]


def test_dramatiq_tries_again(broker: RedisBroker) -> None:
    attempts = []

    @dramatiq.actor(store_results=True, max_retries=3, min_backoff=10, max_backoff=20)
    def fails_at_first() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise RuntimeError("not yet")
        return "done"

    assert fails_at_first.send().get_result(block=True, timeout=30_000) == "done"
    broker.join(fails_at_first.queue_name, timeout=30_000)


def test_dramatiq_limits(server: Server) -> None:
    limiter = ConcurrentRateLimiter(LimitsBackend(url=server.url()), "few", limit=2)
    with limiter.acquire(), limiter.acquire(), limiter.acquire(raise_on_failure=False) as is_let_in:
        assert not is_let_in


def add_one(number: int) -> int:
    return number + 1


@pytest.mark.usefixtures("without_streams")
def test_rq(server: Server) -> None:
    with server.client() as connection:
        queue = rq.Queue(connection=connection)
        job = queue.enqueue(add_one, 1)
        rq.SimpleWorker([queue], connection=connection).work(burst=True)
        assert job.latest_result().return_value == 2
