// Draws every dashboard of a tree with the components of @grafana/ui, in headless Chromium: one picture of what is
// visible when the dashboard opens, and one of each row. Grafana itself takes no part.
import { createServer } from 'node:http';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { dirname, extname, join, normalize, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import * as esbuild from 'esbuild';
import puppeteer from 'puppeteer-core';

import { fail, freePort, ready, start, stop } from './processes.mjs';

const { values } = parseArgs({
  options: {
    root: { type: 'string' },
    recording: { type: 'string' },
    into: { type: 'string' },
    browser: { type: 'string', default: '/usr/bin/chromium' },
    // Only these dashboards, themes and widths.
    boards: { type: 'string' },
    themes: { type: 'string', default: 'dark,light' },
    widths: { type: 'string', default: '1280,420' },
  },
});
if (!values.root || !values.recording || !values.into) fail('draw.mjs --root DIR --recording DIR --into DIR');
const root = resolve(values.root);
const dashboards = join(root, 'dashboards');
const into = resolve(values.into);
const work = join(into, '.page');
const recording = JSON.parse(readFileSync(join(values.recording, 'recording.json'), 'utf8'));
// The first minute has no rates yet.
const range = { from: recording.from + 60_000, to: recording.to, scrape: recording.interval };
const here = dirname(fileURLToPath(import.meta.url));
const names = readdirSync(dashboards).filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -5));
const boards = values.boards ? values.boards.split(',') : names;

mkdirSync(work, { recursive: true });
await esbuild.build({
  entryPoints: [join(here, 'page/main.tsx')],
  outdir: work,
  bundle: true,
  format: 'esm',
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.ttf': 'empty', '.woff': 'file', '.woff2': 'file' },
  // A code editor, which panels do not need.
  alias: { 'monaco-editor': join(here, 'page/nothing.ts') },
  logLevel: 'error',
});

const prometheusPort = await freePort();
const prometheus = start('prometheus', [
  `--config.file=${join(here, 'nothing.yml')}`,
  `--storage.tsdb.path=${join(values.recording, 'data')}`,
  // What was recorded stays, however old it is.
  '--storage.tsdb.retention.time=100y',
  `--web.listen-address=127.0.0.1:${prometheusPort}`,
]);
const source = `http://127.0.0.1:${prometheusPort}`;
await ready(`${source}/-/ready`);

const TYPES = { '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.svg': 'image/svg+xml' };
const PAGE =
  '<!doctype html><html lang="en"><title>Pictures</title>' +
  '<link rel="icon" href="data:,"><link rel="stylesheet" href="/main.css">' +
  '<body style="margin:0"><div id="root"></div><script type="module" src="/main.js"></script></body></html>';
const packages = join(here, 'node_modules');
// The fonts that Grafana serves, and its styles ask for.
const FONTS = {
  '/public/fonts/inter/Inter-Regular.woff2': '@fontsource/inter/files/inter-latin-400-normal.woff2',
  '/public/fonts/inter/Inter-Medium.woff2': '@fontsource/inter/files/inter-latin-500-normal.woff2',
  '/public/fonts/roboto/RobotoMono-Regular.woff2': '@fontsource/roboto-mono/files/roboto-mono-latin-400-normal.woff2',
};

function file(path) {
  if (path === '/range.json') return JSON.stringify(range);
  if (path === '/choices.json') return readFileSync(join(here, 'choices.json'));
  const font = FONTS[path];
  const folders = { '/boards/': dashboards, '/public/build/': join(packages, '@grafana/ui/dist/public'), '/': work };
  const prefix = Object.keys(folders).find((it) => path.startsWith(it));
  const found = font ? join(packages, font) : join(folders[prefix], normalize(path.slice(prefix.length - 1)));
  return existsSync(found) ? readFileSync(found) : undefined;
}

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://page');
  if (pathname === '/') return response.setHeader('content-type', 'text/html').end(PAGE);
  if (pathname.startsWith('/prometheus/')) {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    const headers = { 'content-type': request.headers['content-type'] };
    const answer = await fetch(source + pathname.slice('/prometheus'.length), { method: 'POST', headers, body });
    return response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  }
  const content = file(pathname);
  if (content === undefined) return response.writeHead(404).end();
  response.setHeader('content-type', TYPES[extname(pathname)] ?? 'application/octet-stream').end(content);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const address = `http://127.0.0.1:${server.address().port}`;

const browser = await puppeteer.launch({
  executablePath: values.browser,
  // The sandbox of Chromium does not work for root.
  args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb', '--hide-scrollbars'],
});
const problems = [];
let count = 0;
for (const board of boards) {
  for (const theme of values.themes.split(',')) {
    for (const width of values.widths.split(',').map(Number)) {
      const isOld = (name) => name.startsWith(`${board}-`) && name.endsWith(`-${theme}-${width}.png`);
      for (const name of readdirSync(into).filter(isOld)) rmSync(join(into, name));
      const page = await browser.newPage();
      const say = (text) => problems.push(`${board} ${theme} ${width}: ${text}`);
      page.on('console', (message) => {
        const isBad = ['error', 'warn'].includes(message.type());
        // Answers tell more than the browser does.
        if (isBad && !message.text().startsWith('Failed to load')) say(message.text());
      });
      page.on('response', (response) => response.status() >= 400 && say(`${response.status()} ${response.url()}`));
      page.on('pageerror', (error) => say(error.stack ?? error));
      // Ages such as "4 minutes ago" are those at the end of the recording.
      await page.evaluateOnNewDocument((now) => (Date.now = () => now), range.to);
      await page.setViewport({ width, height: 2000 });
      await page.goto(`${address}/?board=${board}&theme=${theme}`);
      try {
        await page.waitForFunction(() => window.pictures.open === 0, { timeout: 120_000 });
        // Graphs and tables are drawn in later frames: until two looks are the same.
        let before;
        for (let looks = 0; looks < 50; looks += 1) {
          await page.evaluate(() => document.fonts.ready);
          await page.waitForNetworkIdle({ idleTime: 200 });
          const now = await page.screenshot({ encoding: 'base64', optimizeForSpeed: true, fullPage: true });
          if (now === before) break;
          before = now;
        }
        for (const section of await page.$$('[data-section]')) {
          const index = await section.evaluate((element) => element.dataset.section);
          const path = join(into, `${board}-${index}-${theme}-${width}.png`);
          await section.screenshot({ path });
          count += 1;
        }
      } catch (error) {
        say(error.message);
      }
      await page.close();
    }
  }
}
await browser.close();
server.close();
await stop(prometheus);
rmSync(work, { recursive: true });
writeFileSync(join(into, 'problems.txt'), problems.map((it) => `${it}\n`).join(''));
console.log(`${count} pictures in ${into}`);
if (problems.length) fail(problems.join('\n'));
