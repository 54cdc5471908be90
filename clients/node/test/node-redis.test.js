// node-redis, in both versions of the protocol.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';

import { createClient, createClientPool, defineScript, WatchError } from 'redis';

import { onEachServer, until } from '../servers.js';

const addTwice = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)",
  parseCommand(parser, key, number) {
    parser.pushKey(key);
    parser.push(String(number));
  },
  transformReply: (reply) => reply,
});

onEachServer((server) => {
  for (const RESP of [2, 3]) {
    describe(`RESP${RESP}`, () => {
      let client;

      beforeEach(async () => {
        client = createClient({ url: server.url(), RESP, scripts: { addTwice }, socket: { reconnectStrategy: () => 20 } });
        client.on('error', () => {});
        await client.connect();
      });
      afterEach(() => client.destroy());

      test('values of all types', async () => {
        assert.equal(await client.set('apple', 'red', { expiration: { type: 'EX', value: 100 }, condition: 'NX' }), 'OK');
        assert.equal(await client.get('apple'), 'red');
        assert.equal(await client.hSet('hash', { a: '1', b: 'two' }), 2);
        assert.deepEqual({ ...(await client.hGetAll('hash')) }, { a: '1', b: 'two' });
        await client.zAdd('scores', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }]);
        assert.deepEqual(await client.zRangeWithScores('scores', 0, -1), [
          { value: 'a', score: 1 },
          { value: 'b', score: 2.5 },
        ]);
        assert.equal(await client.zScore('scores', 'none'), null);
        await client.sAdd('set', ['x', 'y']);
        assert.deepEqual([...(await client.sMembers('set'))].sort(), ['x', 'y']);
        assert.deepEqual(await client.configGet('maxmemory-policy').then(Object.entries), [['maxmemory-policy', 'noeviction']]);
        await assert.rejects(client.incr('hash'), /WRONGTYPE/);
      });

      test('transactions, and watched keys that change', async () => {
        assert.deepEqual(await client.multi().set('a', '1').incr('a').get('a').exec(), ['OK', 2, '2']);
        const pool = await createClientPool({ url: server.url(), RESP }).connect();
        await assert.rejects(
          pool.execute(async (own) => {
            await own.watch('a');
            await client.set('a', '10');
            await own.multi().set('a', '3').exec();
          }),
          WatchError,
        );
        assert.equal(await client.get('a'), '10');
        pool.destroy();
      });

      test('scripts are loaded when they are missing', async () => {
        assert.equal(await client.addTwice('number', 5), 10);
        await client.scriptFlush();
        assert.equal(await client.addTwice('number', 5), 20);
        assert.deepEqual(await client.multi().addTwice('number', 1).exec(), [22]);
      });

      test('subscribers get messages of channels and patterns', async () => {
        const subscriber = client.duplicate();
        subscriber.on('error', () => {});
        await subscriber.connect();
        const got = [];
        await subscriber.subscribe('news', (message, channel) => got.push([channel, message]));
        await subscriber.pSubscribe('weather.*', (message, channel) => got.push([channel, message]));
        assert.equal(await client.publish('news', 'one'), 1);
        assert.equal(await client.publish('weather.rain', 'two'), 1);
        await until(() => got.length === 2);
        assert.deepEqual(got, [['news', 'one'], ['weather.rain', 'two']]);
        if (RESP === 3) {
          assert.equal(await subscriber.set('key', 'value'), 'OK');
        }
        await subscriber.unsubscribe('news');
        assert.equal(await client.publish('news', 'one'), 0);
        subscriber.destroy();
      });

      test('keys are gone through', async () => {
        await Promise.all(Array.from({ length: 1000 }, (_, number) => client.set(`key ${number}`, 'value')));
        const keys = new Set();
        for await (const some of client.scanIterator({ MATCH: 'key *', COUNT: 100 })) {
          some.forEach((key) => keys.add(key));
        }
        assert.equal(keys.size, 1000);
      });

      test('a client goes on after a restart', async () => {
        await client.set('key', 'value');
        await server.stop();
        const answer = client.get('key');
        await server.start();
        assert.equal(await answer, 'value');
      });
    });
  }
});
