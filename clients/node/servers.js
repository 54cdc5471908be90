// Servers of the tests: `aiodb serve`, and a real redis-server beside it, which shows where a test itself is wrong.

import { spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const START_MS = 60_000;

// Defines the same tests for each server, which is started once for them and emptied before every test.
export function onEachServer(define) {
  for (const kind of ['aiodb', 'redis-server']) {
    describe(kind, () => {
      const server = new Server(kind);
      before(() => server.make());
      after(() => server.remove());
      beforeEach(() => server.say('FLUSHALL'));
      define(server);
    });
  }
}

// Waits until something is so.
export async function until(isSo) {
  while (!(await isSo())) {
    await sleep(10);
  }
}

// A server at a free port of this machine, with its files in a directory of its own.
class Server {
  #directory;
  #process;

  constructor(kind) {
    this.kind = kind;
  }

  async make() {
    this.#directory = mkdtempSync(join(tmpdir(), 'aiodb-clients-'));
    this.port = await freePort();
    await this.start();
  }

  async remove() {
    await this.stop();
    rmSync(this.#directory, { recursive: true });
  }

  // Starts it, at first or again, and waits until it answers.
  async start() {
    const [command, ...options] = this.#command();
    const log = openSync(join(this.#directory, 'server.log'), 'a');
    this.#process = spawn(command, options, { cwd: this.#directory, stdio: ['ignore', log, log] });
    closeSync(log);
    const deadline = Date.now() + START_MS;
    while ((await this.say('PING').catch(() => '')) !== '+PONG') {
      if (this.#process.exitCode !== null || Date.now() > deadline) {
        throw new Error(`${this.kind} does not start: see ${this.#directory}/server.log`);
      }
      await sleep(20);
    }
  }

  // Ends it and waits until it is gone.
  async stop() {
    const gone = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.kill();
    await gone;
  }

  url(database = 0) {
    return `redis://127.0.0.1:${this.port}/${database}`;
  }

  // Sends a line and gives back the first line of the answer, without any library.
  say(line) {
    return new Promise((resolve, reject) => {
      let answer = '';
      const socket = createConnection({ host: '127.0.0.1', port: this.port });
      socket.setEncoding('utf8');
      socket.on('error', reject);
      socket.on('data', (text) => (answer += text));
      socket.on('end', () => resolve(answer.split('\r\n')[0]));
      socket.write(`${line}\r\nQUIT\r\n`);
    });
  }

  #command() {
    const port = String(this.port);
    return this.kind === 'aiodb'
      ? [process.env.AIODB, 'serve', 'data', '--port', port]
      : ['redis-server', '--bind', '127.0.0.1', '--port', port, '--save', '', '--appendonly', 'yes'];
  }
}

function freePort() {
  return new Promise((resolve) => {
    const taken = createServer();
    taken.listen(0, '127.0.0.1', () => {
      const { port } = taken.address();
      taken.close(() => resolve(port));
    });
  });
}
