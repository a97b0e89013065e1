// Queries as Grafana's data source for Prometheus sends them, and their results as data frames.
import { type DataFrame, type Field, FieldType, rangeUtil, dateTime } from '@grafana/data';

import { type Variables, interpolated, readable } from './variables';

export type Range = { from: number; to: number; scrape: number };

type Series = { metric: Record<string, string>; value?: [number, string]; values?: [number, string][] };

export type Target = {
  expr: string;
  format?: string;
  hide?: boolean;
  instant?: boolean;
  interval?: string;
  legendFormat?: string;
  refId: string;
};

async function asked(path: string, parameters: Record<string, string>): Promise<any> {
  const response = await fetch(`/prometheus/api/v1/${path}`, {
    method: 'POST',
    body: new URLSearchParams(parameters),
  });
  const answer = await response.json();
  if (answer.status !== 'success') throw new Error(`${answer.error}: ${parameters.query ?? parameters['match[]']}`);
  return answer.data;
}

/** The results of an instant query at the end of the range. */
export async function vector(query: string, range: Range): Promise<Series[]> {
  const { resultType, result } = await asked('query', { query, time: String(range.to / 1000) });
  return resultType === 'scalar' ? [{ metric: {}, value: result }] : result;
}

/** The values of a label, for variables. */
export async function labelValues(selector: string, label: string, range: Range): Promise<string[]> {
  const times = { start: String(range.from / 1000), end: String(range.to / 1000) };
  const series: Record<string, string>[] = await asked('series', { 'match[]': selector, ...times });
  const values = series.map((it) => it[label]).filter((it) => it !== undefined);
  return [...new Set(values)].sort();
}

/** The step of a graph of so many points, and what the data source puts in place of its own variables. */
export function timing(range: Range, points: number, least: string | undefined) {
  const span = { from: dateTime(range.from), to: dateTime(range.to) };
  const scrape = range.scrape * 1000;
  const lowest = least ? rangeUtil.intervalToMs(least) : scrape;
  const calculated = rangeUtil.calculateInterval({ ...span, raw: span }, points, `${lowest}ms`).intervalMs;
  // Prometheus refuses more than 11,000 points.
  const step = Math.max(calculated, lowest, (range.to - range.from) / 11_000);
  const seconds = Math.round((range.to - range.from) / 1000);
  const builtIn: Record<string, string> = {
    __interval: `${step / 1000}s`,
    __interval_ms: String(step),
    __rate_interval: `${Math.max(step + scrape, 4 * scrape) / 1000}s`,
    __range: `${seconds}s`,
    __range_s: String(seconds),
    __range_ms: String(seconds * 1000),
  };
  return { step, builtIn };
}

/** The name of a series: `{{node}} port {{port}}` with its labels, or all labels. */
function named(format: string | undefined, metric: Record<string, string>): string {
  if (format && format !== '__auto') {
    return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label: string) => metric[label] ?? '');
  }
  const { __name__: name = '', ...labels } = metric;
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return pairs.length ? `${name}{${pairs.join(', ')}}` : name || 'Value';
}

/** The results of a panel's queries: for each series a frame, for each query of a table one frame. */
export async function frames(
  targets: Target[],
  points: number,
  range: Range,
  variables: Variables,
): Promise<DataFrame[]> {
  const shown = targets.filter((target) => !target.hide);
  const tables = shown.filter((target) => target.format === 'table').length;
  const results = shown.map(async (target) => {
    const { step, builtIn } = timing(range, points, target.interval);
    const query = interpolated(target.expr, variables, builtIn);
    let found: Series[];
    if (target.instant) {
      found = await vector(query, range);
    } else {
      const [start, end] = [range.from, range.to].map((it) => Math.floor(it / step) * step);
      const parameters = { query, start: String(start / 1000), end: String(end / 1000), step: String(step / 1000) };
      found = (await asked('query_range', parameters)).result;
    }
    if (target.format === 'table') return table(target, found, tables > 1);
    const format = target.legendFormat && readable(target.legendFormat, variables);
    return found.map((series) => timeSeries({ ...target, legendFormat: format }, series, step));
  });
  return (await Promise.all(results)).flat();
}

function timeSeries(target: Target, series: Series, step: number): DataFrame {
  const samples = series.values ?? [series.value!];
  const { __name__: name = 'Value', ...labels } = series.metric;
  const fields: Field[] = [
    {
      name: 'Time',
      type: FieldType.time,
      // Where a sample is missing for longer than this, the line has a gap.
      config: { interval: step },
      values: samples.map(([time]) => time * 1000),
    },
    {
      name,
      type: FieldType.number,
      config: { displayNameFromDS: named(target.legendFormat, series.metric) },
      labels,
      values: samples.map(([, value]) => number(value)),
    },
  ];
  return { refId: target.refId, name: fields[1].config.displayNameFromDS, fields, length: samples.length };
}

function table(target: Target, found: Series[], several: boolean): DataFrame[] {
  if (!found.length) return [];
  const labels = [...new Set(found.flatMap((it) => Object.keys(it.metric).sort()))];
  const latest = found.map((it) => it.value ?? it.values!.at(-1)!);
  const fields: Field[] = [
    { name: 'Time', type: FieldType.time, config: {}, values: latest.map(([time]) => time * 1000) },
    ...labels.map((name) => ({
      name,
      type: FieldType.string,
      config: { filterable: true },
      values: found.map((it) => it.metric[name] ?? ''),
    })),
    {
      name: several ? `Value #${target.refId}` : 'Value',
      type: FieldType.number,
      config: {},
      values: latest.map(([, value]) => number(value)),
    },
  ];
  return [{ refId: target.refId, meta: { preferredVisualisationType: 'table' }, fields, length: found.length }];
}

function number(text: string): number {
  return text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);
}
