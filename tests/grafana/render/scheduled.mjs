// What a job exporter and kube-state-metrics say of the demo's hosts, for the dashboard of jobs: the demo has no
// scheduler. Jobs with host-20, whose link flaps, and with hosts whose links are sound; a pod; a host of no fabric.
import { once } from 'node:events';
import { createServer } from 'node:http';

const JOBS = { 4711: ['host-20', 'host-21', 'host-22'], 4712: ['host-1', 'host-3'], 4713: ['login-1'] };
const PODS = { 'train-0': 'host-20', 'serve-0': 'host-30' };

const jobs = Object.entries(JOBS).flatMap(([id, hosts]) =>
  hosts.map((host) => `slurm_node_job{job_id="${id}",node_name="${host}"} 1`),
);
const pods = Object.entries(PODS).map(
  ([pod, node]) => `kube_pod_info{namespace="ml",pod="${pod}",node="${node}",created_by_kind="Job"} 1`,
);

/** Serves them on a free port of 127.0.0.1; the server. */
export async function serveScheduled() {
  const text = `${[...jobs, ...pods].join('\n')}\n`;
  const server = createServer((_, answer) => {
    answer.setHeader('Content-Type', 'text/plain; version=0.0.4');
    answer.end(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
