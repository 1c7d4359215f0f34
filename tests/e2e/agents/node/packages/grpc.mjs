// Every kind of call of tests/grpcservice.py by grpc-js: with TLS at localhost:SECURE, without at localhost:PLAIN. What
// it says holds times, random numbers and ids.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import grpc from '@grpc/grpc-js';

const [, , secure, plain, roots] = process.argv;
const same = (message) => message;
const text = (...parts) => Buffer.from(parts.join(' '));
const values = () => [Date.now(), Math.random(), randomUUID(), performance.now()];
const deadline = () => ({ deadline: new Date(Date.now() + 60_000) });

class Service {
  constructor(address, credentials) {
    this.client = new grpc.Client(address, credentials);
  }

  unary(message, method = 'Unary') {
    return new Promise((resolve) => {
      const metadata = new grpc.Metadata();
      metadata.set('mark', `m${Math.random()}`);
      metadata.set('trace-bin', Buffer.from([0, 255]));
      const heard = [];
      const done = (error, reply) => resolve([...heard, error ? [error.code, error.details] : String(reply), ...values()]);
      const call = this.client.makeUnaryRequest(`/test.Service/${method}`, same, same, message, metadata, deadline(), done);
      call.on('metadata', (found) => heard.push(found.get('server')));
      call.on('status', (status) => heard.push(status.code, status.metadata.get('echo'), status.metadata.get('why-bin')));
    });
  }

  async down(count) {
    const parts = [];
    const call = this.client.makeServerStreamRequest('/test.Service/Down', same, same, text(count), deadline());
    for await (const part of call) parts.push(String(part), Math.random());
    return parts;
  }

  up() {
    return new Promise((resolve, reject) => {
      const done = (error, reply) => (error ? reject(error) : resolve(String(reply)));
      const call = this.client.makeClientStreamRequest('/test.Service/Up', same, same, deadline(), done);
      for (const message of [text('a', ...values()), Buffer.alloc(100_000, 'b'), Buffer.alloc(0)]) call.write(message);
      call.end();
    });
  }

  // Say the next thing when the answer to the one before it has come.
  async chat() {
    const call = this.client.makeBidiStreamRequest('/test.Service/Chat', same, same, deadline());
    const heard = [];
    call.write(text('message 0', ...values()));
    for await (const reply of call) {
      heard.push(String(reply));
      if (heard.length < 3) call.write(text('message', heard.length, ...values()));
      else call.end();
    }
    return heard;
  }
}

async function each(address, credentials) {
  const service = new Service(address, credentials);
  console.log('one', await service.unary(text('hello', ...values())));
  console.log('errors', await service.unary(text('fail')), await service.unary(text(''), 'Nowhere'));
  console.log('streams', await service.down(3), await service.up(), await service.chat());
  await sleep(1000);
  console.log('at once', JSON.stringify(await Promise.all([
    service.unary(text('slow', ...values()), 'Slow'),
    ...[1, 2, 3].map((n) => service.unary(text(n, ...values()))),
    service.down(2),
    service.chat(),
    (async () => [await service.unary(text('deep', ...values())), await service.chat(), values()])(),
  ])));
  service.client.close();
}

await each(`localhost:${secure}`, grpc.credentials.createSsl());
await each(`localhost:${secure}`, grpc.credentials.createSsl(readFileSync(roots))); // trusts these and no others
await each(`localhost:${plain}`, grpc.credentials.createInsecure());
console.log('end', ...values());
