"""redis-py with asyncio."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import redis.asyncio as redis
from redis.exceptions import WatchError
from servers import Server


def run(server: Server, work: Callable[[redis.Redis], Awaitable[None]], protocol: int = 3) -> None:
    async def with_client() -> None:
        async with redis.Redis.from_url(server.url(), protocol=protocol, decode_responses=True) as client:
            await work(client)

    asyncio.run(with_client())


@pytest.mark.parametrize("protocol", [2, 3])
def test_pipelines_of_many_tasks(server: Server, protocol: int) -> None:
    async def work(client: redis.Redis) -> None:
        async def task(number: int) -> list[object]:
            async with client.pipeline(transaction=number % 2 == 0) as pipeline:
                pipeline.set(f"key {number}", number).incr("counter").get(f"key {number}")
                return await pipeline.execute()

        answers = await asyncio.gather(*(task(number) for number in range(50)))
        assert [(first, third) for first, _, third in answers] == [(True, str(number)) for number in range(50)]
        assert sorted(second for _, second, _ in answers) == list(range(1, 51))

    run(server, work, protocol)


def test_a_watched_key_that_changes_ends_the_transaction(server: Server) -> None:
    async def work(client: redis.Redis) -> None:
        async with client.pipeline() as transaction:
            await transaction.watch("watched")
            await client.set("watched", "other")
            transaction.multi()
            transaction.set("watched", "mine")
            with pytest.raises(WatchError):
                await transaction.execute()
        assert await client.get("watched") == "other"

    run(server, work)


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_task_that_listens(server: Server, protocol: int) -> None:
    async def work(client: redis.Redis) -> None:
        async with client.pubsub() as subscriber:
            await subscriber.subscribe("news")
            await subscriber.psubscribe("weather.*")
            got = []

            async def listen() -> None:
                async for message in subscriber.listen():
                    got.append((message["type"], message["channel"], message["data"]))
                    if len(got) == 2:
                        await client.publish("news", "one")
                        await client.publish("weather.rain", "two")
                    if len(got) == 4:
                        return

            await asyncio.wait_for(listen(), 30)
            assert got == [
                ("subscribe", "news", 1),
                ("psubscribe", "weather.*", 2),
                ("message", "news", "one"),
                ("pmessage", "weather.rain", "two"),
            ]

    run(server, work, protocol)


def test_those_who_wait_are_served_in_their_order(server: Server) -> None:
    async def work(client: redis.Redis) -> None:
        async def wait_for_clients(count: int) -> None:
            while (await client.info("clients"))["blocked_clients"] != count:
                await asyncio.sleep(0.01)

        waiting = []
        for number in range(3):
            waiting.append(asyncio.create_task(client.blpop("queue", timeout=30)))
            await wait_for_clients(number + 1)
        await client.rpush("queue", "a", "b", "c")
        got = await asyncio.gather(*waiting)
        assert [element for _, element in got] == ["a", "b", "c"]

    run(server, work)


def test_a_waiting_task_that_is_cancelled_takes_nothing(server: Server) -> None:
    async def work(client: redis.Redis) -> None:
        waiting = asyncio.create_task(client.blpop("queue", timeout=30))
        while (await client.info("clients"))["blocked_clients"] == 0:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while (await client.info("clients"))["blocked_clients"] != 0:
            await asyncio.sleep(0.01)
        await client.rpush("queue", "a")
        assert await client.llen("queue") == 1

    run(server, work)


def test_a_lock_lets_one_task_in_at_a_time(server: Server) -> None:
    async def work(client: redis.Redis) -> None:
        async def count() -> None:
            async with client.lock("door", timeout=30, sleep=0.005):
                value = int(await client.get("counter") or 0)
                await asyncio.sleep(0)
                await client.set("counter", value + 1)

        await asyncio.gather(*(count() for _ in range(20)))
        assert await client.get("counter") == "20"

    run(server, work)


def test_scripts_and_iterators(server: Server) -> None:
    async def work(client: redis.Redis) -> None:
        fill = client.register_script(
            "for i = 1, ARGV[1] do redis.call('SADD', KEYS[1], 'member ' .. i) end return 'done'"
        )
        assert await fill(keys=["set"], args=[1000]) == "done"
        assert len({member async for member in client.sscan_iter("set", count=100)}) == 1000

    run(server, work)
