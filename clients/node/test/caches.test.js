// Caches and limits: Keyv, cache-manager, rate-limiter-flexible.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import KeyvRedis from '@keyv/redis';
import { createCache } from 'cache-manager';
import { Redis } from 'ioredis';
import Keyv from 'keyv';
import { RateLimiterRedis } from 'rate-limiter-flexible';

import { onEachServer } from '../servers.js';

onEachServer((server) => {
  test('Keyv', async () => {
    const keyv = new Keyv(new KeyvRedis(server.url()), { namespace: 'cache' });
    await keyv.set('object', { a: [1, 2] }, 100_000);
    assert.deepEqual(await keyv.get('object'), { a: [1, 2] });
    assert.equal(await keyv.get('none'), undefined);
    assert.equal(await keyv.has('object'), true);
    await keyv.setMany([
      { key: 'x', value: 1 },
      { key: 'y', value: 2 },
    ]);
    assert.deepEqual(await keyv.getMany(['x', 'none', 'y']), [1, undefined, 2]);
    const keys = [];
    for await (const [key] of keyv.iterator()) {
      keys.push(key);
    }
    assert.deepEqual(keys.sort(), ['object', 'x', 'y']);
    assert.equal(await keyv.delete('x'), true);
    await keyv.clear();
    assert.equal(await keyv.get('object'), undefined);
    await keyv.disconnect();
  });

  test('cache-manager', async () => {
    const cache = createCache({ stores: [new Keyv(new KeyvRedis(server.url()))] });
    let calls = 0;
    const slow = () => cache.wrap('slow', async () => ({ calls: ++calls }), 100_000);
    assert.deepEqual([await slow(), await slow()], [{ calls: 1 }, { calls: 1 }]);
    await cache.mset([
      { key: 'x', value: 1 },
      { key: 'y', value: 2, ttl: 100_000 },
    ]);
    assert.deepEqual(await cache.mget(['x', 'y']), [1, 2]);
    assert.ok((await cache.ttl('y')) > Date.now());
    await cache.mdel(['x', 'y']);
    assert.equal(await cache.get('x'), undefined);
    await cache.clear();
    assert.deepEqual(await slow(), { calls: 2 });
    await cache.disconnect();
  });

  test('rate-limiter-flexible', async () => {
    const client = new Redis({ port: server.port, host: '127.0.0.1' });
    const limiter = new RateLimiterRedis({ storeClient: client, points: 3, duration: 100, blockDuration: 200 });
    assert.equal((await limiter.consume('alice', 2)).remainingPoints, 1);
    assert.equal((await limiter.consume('alice')).remainingPoints, 0);
    await assert.rejects(limiter.consume('alice'), (refused) => refused.msBeforeNext > 100_000);
    assert.equal((await limiter.consume('bob')).remainingPoints, 2);
    assert.equal((await limiter.get('bob')).consumedPoints, 1);
    assert.equal(await limiter.delete('alice'), true);
    client.disconnect();
  });
});
