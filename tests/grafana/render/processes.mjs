// Programs that run while the pictures are made: started at low priority, awaited, and always ended.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

const running = new Set();

/** A port of 127.0.0.1 that is free now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a program with low priority; what it says is shown if it ends by itself. */
export function start(program, args) {
  // Not the lowest priority: on a busy machine scrapes would time out.
  const child = spawn('nice', ['-n', '5', program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const keep = (bytes) => (said = (said + bytes).slice(-4000));
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  child.on('error', (error) => fail(`${program}: ${error.message}`));
  child.on('exit', (code) => {
    if (running.delete(child)) fail(`${program} ended (${code}):\n${said}`);
  });
  running.add(child);
  return child;
}

/** Ends a program, and waits until it has written what it has. */
export async function stop(child) {
  running.delete(child);
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** Says what is wrong, and ends this program and those that it started. */
export function fail(message) {
  console.error(message);
  process.exit(1);
}

process.on('exit', () => {
  for (const child of running) child.kill('SIGTERM');
});

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => fail(`stopped by ${signal}`));

/** Waits until an address answers with success. */
export async function ready(url, seconds = 120) {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    if (performance.now() > end) fail(`no answer from ${url} within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
