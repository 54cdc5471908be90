// Queues of jobs: Bee-Queue; Bull and BullMQ, which need what `aiodb serve` does not have.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import BeeQueue from 'bee-queue';
import Bull from 'bull';
import { Queue, QueueEvents, Worker } from 'bullmq';

import { onEachServer } from '../servers.js';

onEachServer((server) => {
  const connection = () => ({ port: server.port, host: '127.0.0.1', maxRetriesPerRequest: null });

  test('Bee-Queue', async () => {
    const queue = new BeeQueue('letters', { redis: connection(), activateDelayedJobs: true });
    const attempts = new Map();
    queue.process(4, async (job) => {
      attempts.set(job.id, (attempts.get(job.id) ?? 0) + 1);
      if (attempts.get(job.id) <= job.data.failures) {
        throw new Error('not yet');
      }
      return job.data.number + 1;
    });
    const result = (job) =>
      new Promise((resolve) => {
        job.on('succeeded', resolve);
        job.on('failed', (error) => resolve(error.message));
      });
    const jobs = Array.from({ length: 20 }, (_, number) => queue.createJob({ number, failures: 0 }));
    const results = jobs.map(result);
    assert.equal((await queue.saveAll(jobs)).size, 0);
    assert.deepEqual(await Promise.all(results), Array.from({ length: 20 }, (_, number) => number + 1));
    const retried = queue.createJob({ number: 1, failures: 2 }).retries(2).backoff('immediate');
    const failed = queue.createJob({ number: 1, failures: 2 });
    const delayed = queue.createJob({ number: 2, failures: 0 }).delayUntil(Date.now() + 200);
    const more = [retried, failed, delayed].map(result);
    await Promise.all([retried, failed, delayed].map((job) => job.save()));
    assert.deepEqual(await Promise.all(more), [2, 'not yet', 3]);
    const health = await queue.checkHealth();
    assert.deepEqual([health.succeeded, health.failed, health.waiting, health.delayed], [22, 1, 0, 0]);
    await queue.close();
  });

  test('Bull', async () => {
    const queue = new Bull('letters', { redis: connection() });
    try {
      if (server.kind === 'aiodb') {
        await assert.rejects(queue.add({ number: 1 }), /cmsgpack/);
      } else {
        queue.process(async (job) => job.data.number + 1);
        assert.equal(await (await queue.add({ number: 1 })).finished(), 2);
      }
    } finally {
      await queue.close();
    }
  });

  test('BullMQ', async () => {
    const queue = new Queue('letters', { connection: connection() });
    try {
      if (server.kind === 'aiodb') {
        await assert.rejects(queue.add('letter', { number: 1 }), /cmsgpack|XADD/);
        return;
      }
      const worker = new Worker('letters', async (job) => job.data.number + 1, { connection: connection() });
      // From the first event on: by default only what happens after its first read, which the job may be faster than.
      const events = new QueueEvents('letters', { connection: connection(), lastEventId: '0-0' });
      await events.waitUntilReady();
      assert.equal(await (await queue.add('letter', { number: 1 })).waitUntilFinished(events), 2);
      await events.close();
      await worker.close();
    } finally {
      await queue.close();
    }
  });
});
