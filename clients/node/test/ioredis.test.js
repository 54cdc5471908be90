// ioredis, as programs use it.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';

import { Redis } from 'ioredis';

import { onEachServer, until } from '../servers.js';

onEachServer((server) => {
  let clients;

  function connect(options = {}) {
    const client = new Redis({ port: server.port, host: '127.0.0.1', ...options });
    clients.push(client);
    return client;
  }

  beforeEach(() => (clients = []));
  afterEach(() => clients.forEach((client) => client.disconnect()));

  test('values of all types', async () => {
    const client = connect();
    assert.equal(await client.set('apple', 'red', 'EX', 100, 'NX'), 'OK');
    assert.equal(await client.set('apple', 'green', 'NX'), null);
    assert.equal(await client.set('apple', 'green', 'KEEPTTL', 'GET'), 'red');
    assert.ok((await client.ttl('apple')) > 0);
    assert.deepEqual(await client.getBuffer('apple'), Buffer.from('green'));
    const bytes = Buffer.from([0, 255, 13, 10]);
    await client.set(bytes, bytes);
    assert.deepEqual(await client.getBuffer(bytes), bytes);
    await client.hset('hash', { a: 1, b: 'two' });
    assert.deepEqual(await client.hgetall('hash'), { a: '1', b: 'two' });
    await client.mset(new Map([['x', '1'], ['y', '2']]));
    assert.deepEqual(await client.mget('x', 'none', 'y'), ['1', null, '2']);
    await client.zadd('scores', 1, 'a', '2.5', 'b', '+inf', 'c');
    assert.deepEqual(await client.zrange('scores', 0, -1, 'WITHSCORES'), ['a', '1', 'b', '2.5', 'c', 'inf']);
    assert.deepEqual(await client.zrange('scores', '(1', '+inf', 'BYSCORE', 'LIMIT', 0, 1), ['b']);
    await assert.rejects(client.incr('hash'), /WRONGTYPE/);
  });

  test('a pipeline has errors in their places', async () => {
    const answers = await connect().pipeline().set('text', 'value').incr('text').get('text').exec();
    assert.deepEqual([answers[0], answers[2]], [[null, 'OK'], [null, 'value']]);
    assert.match(answers[1][0].message, /not an integer/);
  });

  test('commands of one moment go out together', async () => {
    const client = connect({ enableAutoPipelining: true });
    const answers = await Promise.all(Array.from({ length: 1000 }, (_, number) => client.incrby('counter', number)));
    assert.equal(answers.at(-1), (999 * 1000) / 2);
  });

  test('transactions, and watched keys that change', async () => {
    const [client, other] = [connect(), connect()];
    assert.deepEqual(await client.multi().set('a', 1).incr('a').exec(), [[null, 'OK'], [null, 2]]);
    await assert.rejects(client.multi().set('a', 1).call('NOSUCH').exec(), /EXECABORT/);
    await client.watch('a');
    await other.set('a', 10);
    assert.equal(await client.multi().set('a', 3).exec(), null);
    assert.equal(await client.get('a'), '10');
    await client.multi({ pipeline: false });
    assert.equal(await client.set('a', 4), 'QUEUED');
    assert.deepEqual(await client.exec(), [[null, 'OK']]);
  });

  test('scripts are loaded when they are missing', async () => {
    const client = connect({
      keyPrefix: 'site:',
      scripts: { addTwice: { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)" } },
    });
    assert.equal(await client.addTwice('number', 5), 10);
    await client.script('FLUSH');
    assert.equal(await client.addTwice('number', 5), 20);
    assert.deepEqual(await client.pipeline().addTwice('number', 1).get('number').exec(), [[null, 22], [null, '22']]);
    assert.deepEqual(await client.multi().addTwice('number', 1).exec(), [[null, 24]]);
    await assert.rejects(client.eval("return redis.error_reply('my own error')", 0), /my own error/);
  });

  test('subscribers get messages of channels and patterns', async () => {
    const [client, subscriber] = [connect(), connect()];
    const got = [];
    subscriber.on('message', (channel, message) => got.push([channel, message]));
    subscriber.on('pmessage', (pattern, channel, message) => got.push([pattern, channel, message]));
    assert.equal(await subscriber.subscribe('news', 'other'), 2);
    assert.equal(await subscriber.psubscribe('weather.*'), 3);
    await assert.rejects(subscriber.get('key'), /subscriber mode/);
    assert.equal(await client.publish('news', 'one'), 1);
    assert.equal(await client.publish('weather.rain', 'two'), 1);
    await until(() => got.length === 2);
    assert.deepEqual(got, [['news', 'one'], ['weather.*', 'weather.rain', 'two']]);
    assert.equal(await subscriber.unsubscribe('news', 'other'), 1);
    assert.equal(await subscriber.punsubscribe('weather.*'), 0);
    assert.equal(await subscriber.set('key', 'value'), 'OK');
  });

  test('streams of keys and elements', async () => {
    const client = connect();
    const fill = client.pipeline();
    for (let number = 0; number < 1000; number++) {
      fill.set(`key ${number}`, 'value').hset('hash', `field ${number}`, number);
    }
    await fill.exec();
    const keys = new Set();
    for await (const some of client.scanStream({ match: 'key *', count: 100 })) {
      some.forEach((key) => keys.add(key));
    }
    assert.equal(keys.size, 1000);
    let fields = 0;
    for await (const some of client.hscanStream('hash', { count: 100 })) {
      fields += some.length / 2;
    }
    assert.equal(fields, 1000);
  });

  test('who waits for an element gets it', async () => {
    const [client, waiting] = [connect(), connect()];
    assert.equal(await waiting.blpop('queue', 0.05), null);
    const element = waiting.blpop('other', 'queue', 30);
    await client.rpush('queue', 'element');
    assert.deepEqual(await element, ['queue', 'element']);
  });

  test('a client goes on after it was killed, and after a restart', async () => {
    const options = { retryStrategy: () => 20, maxRetriesPerRequest: null, connectionName: 'tester', db: 2 };
    const [client, subscriber] = [connect(options), connect({ ...options, connectionName: 'subscriber' })];
    client.on('error', () => {});
    subscriber.on('error', () => {});
    const got = [];
    subscriber.on('message', (channel, message) => got.push(message));
    await subscriber.subscribe('news');
    await client.set('key', 'value');
    await server.say(`CLIENT KILL ID ${await client.client('ID')}`);
    assert.equal(await client.get('key'), 'value');
    assert.equal(await client.client('GETNAME'), 'tester');
    await server.stop();
    const answer = client.get('key');
    await server.start();
    assert.equal(await answer, 'value');
    await until(async () => (await client.publish('news', 'one')) === 1);
    await until(() => got.length === 1);
  });

  test('users with rights', async () => {
    const client = connect();
    await client.acl('SETUSER', 'alice', 'on', '>open sesame', '~orders:*', '+@all');
    const alice = connect({ username: 'alice', password: 'open sesame' });
    assert.equal(await alice.set('orders:1', 'pen'), 'OK');
    await assert.rejects(alice.get('secret'), /NOPERM/);
    await client.acl('DELUSER', 'alice');
  });
});
