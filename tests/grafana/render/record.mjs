// Records the demo: a real Prometheus scrapes `fabric-exporter demo` and evaluates the rules of alerts/ for
// some minutes. The directory of the recording has Prometheus' data and recording.json: when it was made.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { fail, freePort, ready, start, stop } from './processes.mjs';
import { serveScheduled } from './scheduled.mjs';

/** Seconds between scrapes, and between evaluations of the rules: the demo's interval between sweeps. */
const INTERVAL = 5;
/** The name that Prometheus gives the demo's host. */
const INSTANCE = 'gpu-0:10315';

const { values } = parseArgs({
  options: {
    root: { type: 'string' },
    program: { type: 'string' },
    into: { type: 'string' },
    minutes: { type: 'string', default: '20' },
    // Faults of the demo begin in its first 4 minutes. Slower, they fill the graphs.
    speedup: { type: 'string', default: '0.5' },
  },
});
const minutes = Number(values.minutes);
if (!values.root || !values.program || !values.into || !(minutes > 1)) {
  fail('record.mjs --root DIR --program FILE --into DIR [--minutes N], with more than one minute');
}

const folder = resolve(values.into);
const fresh = `${folder}.new`;
rmSync(fresh, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });
const [exporterPort, prometheusPort] = [await freePort(), await freePort()];
const scheduled = await serveScheduled();
const alerts = resolve(values.root, 'alerts');
const rules = readdirSync(alerts).filter((name) => name.endsWith('.rules.yml'));
const config = {
  global: { scrape_interval: `${INTERVAL}s`, evaluation_interval: `${INTERVAL}s` },
  rule_files: rules.map((name) => join(alerts, name)),
  scrape_configs: [
    {
      job_name: 'fabric-exporter',
      static_configs: [{ targets: [`127.0.0.1:${exporterPort}`], labels: { instance: INSTANCE } }],
    },
    {
      job_name: 'scheduled',
      static_configs: [{ targets: [`127.0.0.1:${scheduled.address().port}`] }],
    },
  ],
};
// JSON is YAML.
writeFileSync(join(fresh, 'prometheus.yml'), JSON.stringify(config, undefined, 2));

const flags = [`--web.listen-address=127.0.0.1:${exporterPort}`, `--speedup=${values.speedup}`];
const exporter = start(values.program, ['demo', ...flags]);
await ready(`http://127.0.0.1:${exporterPort}/-/ready`);
const from = Date.now();
const prometheus = start('prometheus', [
  `--config.file=${join(fresh, 'prometheus.yml')}`,
  `--storage.tsdb.path=${join(fresh, 'data')}`,
  `--web.listen-address=127.0.0.1:${prometheusPort}`,
]);
await ready(`http://127.0.0.1:${prometheusPort}/-/ready`);
console.log(`recording the demo for ${minutes} minutes`);
await new Promise((resolve) => setTimeout(resolve, minutes * 60_000));
const to = Date.now();
await stop(prometheus);
await stop(exporter);
scheduled.close();
scheduled.closeAllConnections();
const recording = { from, to, interval: INTERVAL };
writeFileSync(join(fresh, 'recording.json'), JSON.stringify(recording, undefined, 2));
rmSync(folder, { recursive: true, force: true });
renameSync(fresh, folder);
console.log(`recorded in ${folder}`);
