// Sessions of Express in connect-redis.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';

import { RedisStore } from 'connect-redis';
import express from 'express';
import session from 'express-session';
import { createClient } from 'redis';

import { onEachServer } from '../servers.js';

onEachServer((server) => {
  let client;
  let store;
  let site;

  beforeEach(async () => {
    client = await createClient({ url: server.url() }).connect();
    store = new RedisStore({ client, prefix: 'session:', ttl: 100 });
    const app = express();
    app.use(session({ store, secret: 'of the tests', resave: false, saveUninitialized: false }));
    app.get('/visits', (request, response) => {
      request.session.visits = (request.session.visits ?? 0) + 1;
      response.json(request.session.visits);
    });
    app.get('/leave', (request, response) => request.session.destroy(() => response.json('bye')));
    site = await new Promise((resolve) => {
      const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
    });
  });

  afterEach(() => {
    site.closeAllConnections();
    site.close();
    client.destroy();
  });

  async function visit(path, cookie) {
    const headers = cookie ? { cookie } : {};
    const response = await fetch(`http://127.0.0.1:${site.address().port}${path}`, { headers });
    return [await response.json(), cookie ?? response.headers.get('set-cookie').split(';')[0]];
  }

  test('sessions are kept, told apart and removed', async () => {
    const [first, alice] = await visit('/visits');
    const [other, bob] = await visit('/visits');
    assert.deepEqual([first, other], [1, 1]);
    assert.deepEqual([(await visit('/visits', alice))[0], (await visit('/visits', alice))[0]], [2, 3]);
    const keys = await client.keys('session:*');
    assert.equal(keys.length, 2);
    assert.ok((await client.ttl(keys[0])) > 0);
    await visit('/leave', alice);
    assert.equal((await client.keys('session:*')).length, 1);
    assert.equal((await visit('/visits', bob))[0], 2);
  });

  test('the store counts, lists and empties', async () => {
    for (let number = 0; number < 300; number++) {
      await store.set(`id ${number}`, { number, cookie: {} });
    }
    assert.equal(await store.length(), 300);
    assert.equal((await store.all()).length, 300);
    await store.touch('id 1', { cookie: { expires: new Date(Date.now() + 1_000_000) } });
    assert.ok((await client.ttl('session:id 1')) > 100);
    await store.clear();
    assert.equal(await store.length(), 0);
  });
});
