// The Prometheus operator's own schemas, for tests/deploy/schemas.rs: reads objects as JSON on standard
// input, writes a list of what is wrong. They let unknown keys pass; those the types know (operator.ts).
import { PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";
import { readFileSync } from "node:fs";

const kinds = { PrometheusRule, ServiceMonitor };
const problems = [];
for (const it of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    new kinds[it.kind](it).validate();
  } catch (error) {
    problems.push(`${it.kind} ${it.metadata.name}: ${error.message}`);
  }
}
console.log(JSON.stringify(problems));
