// The variables of a dashboard, resolved as Grafana does: in the order of their dependencies, with the
// chosen value, or all values, or the first one.
import { stringToJsRegex } from '@grafana/data';

import { type Range, labelValues, timing, vector } from './prometheus';

type Option = { text: string; value: string };

export type Variable = {
  name: string;
  label: string;
  hidden: boolean;
  multi: boolean;
  text: string;
  /** One value, all values, or the regular expression for all. */
  value: string | string[];
  isPattern: boolean;
};

export type Variables = Map<string, Variable>;

const REFERENCE = /\$(\w+)|\$\{(\w+)(?:\.[^:}]+)?(?::(\w+))?\}/g;

const quoted = (value: string) => value.replace(/\\/g, '\\\\').replace(/"/g, '\\"');
const literal = (value: string) =>
  value.replace(/\\/g, '\\\\\\\\').replace(/[$^*{}[\]'+?.()|]/g, '\\\\$&');

/** An expression with values in place of variables, escaped as in PromQL. */
export function interpolated(text: string, variables: Variables, builtIn: Record<string, string> = {}): string {
  return text.replace(REFERENCE, (all, plain, braced) => {
    const name = plain ?? braced;
    if (name in builtIn) return builtIn[name];
    const variable = variables.get(name);
    if (!variable) return all;
    const { value } = variable;
    if (variable.isPattern) return value as string;
    if (!variable.multi) return quoted(value as string);
    const values = ([] as string[]).concat(value).map(literal);
    return values.length === 1 ? values[0] : `(${values.join('|')})`;
  });
}

/** A title with the texts of variables. */
export function readable(text: string, variables: Variables): string {
  return text.replace(REFERENCE, (all, plain, braced) => variables.get(plain ?? braced)?.text ?? all);
}

function selected(values: string[], regex: string | undefined): Option[] {
  if (!regex) return values.map((value) => ({ text: value, value }));
  const pattern = stringToJsRegex(regex);
  const found = values.flatMap((it): Option[] => {
    const matches = pattern.global ? [...it.matchAll(pattern)] : [it.match(pattern)].filter((match) => match !== null);
    if (!matches.length) return [];
    const group = (name: string) => matches.find((match) => match.groups?.[name])?.groups?.[name];
    const [text, value] = [group('text'), group('value')];
    if (text ?? value) return [{ text: (text ?? value)!, value: (value ?? text)! }];
    const groups = matches.filter((match) => match.length > 1).map((match) => match[1]);
    return (groups.length ? groups : [it]).map((value) => ({ text: value, value }));
  });
  return [...new Map(found.map((option) => [option.value, option])).values()];
}

const NATURAL = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** By `sort` of a variable: 0 as found, then alphabetical, numerical, without case, natural; each up and down. */
function sorted(options: Option[], sort: number): Option[] {
  const kind = Math.ceil(sort / 2);
  const digits = (option: Option) => Number(/\d+/.exec(option.text)?.[0] ?? -1);
  const orders: ((a: Option, b: Option) => number)[] = [
    () => 0,
    (a, b) => a.text.localeCompare(b.text),
    (a, b) => digits(a) - digits(b),
    (a, b) => a.text.toLowerCase().localeCompare(b.text.toLowerCase()),
    (a, b) => NATURAL.compare(a.text, b.text),
  ];
  const ordered = [...options].sort(orders[kind] ?? orders[0]);
  return sort > 0 && sort % 2 === 0 ? ordered.reverse() : ordered;
}

async function offered(model: any, variables: Variables, range: Range): Promise<Option[]> {
  if (['custom', 'interval'].includes(model.type)) {
    return String(model.query).split(',').map((it) => ({ text: it.trim(), value: it.trim() }));
  }
  if (model.type !== 'query') throw new Error(`$${model.name}: a variable of the type ${model.type}`);
  const { builtIn } = timing(range, 100, undefined);
  const regex = model.regex ? interpolated(model.regex, variables) : undefined;
  const query = interpolated(String(model.query.query ?? model.query), variables, builtIn).trim();
  const inner = /^(\w+)\((.*)\)$/s.exec(query);
  let values: string[];
  if (inner?.[1] === 'query_result') {
    values = (await vector(inner[2], range)).map(({ metric, value }) => {
      const { __name__: name = '', ...labels } = metric;
      const pairs = Object.entries(labels).map(([label, it]) => `${label}="${it}"`);
      return `${name}{${pairs.join(',')}} ${Number(value![1])} ${value![0] * 1000}`;
    });
  } else if (inner?.[1] === 'label_values') {
    const comma = inner[2].lastIndexOf(',');
    if (comma < 0) throw new Error(`$${model.name}: label_values without a series`);
    values = await labelValues(inner[2].slice(0, comma).trim(), inner[2].slice(comma + 1).trim(), range);
  } else {
    throw new Error(`$${model.name}: ${query}`);
  }
  return sorted(selected(values, regex), model.sort ?? 0);
}

async function resolved(model: any, choice: string | undefined, variables: Variables, range: Range): Promise<Variable> {
  const base = {
    name: model.name,
    label: model.label || model.name,
    hidden: model.hide === 2,
    multi: Boolean(model.multi || model.includeAll),
    isPattern: false,
  };
  if (model.type === 'datasource') return { ...base, text: 'Prometheus', value: 'prometheus' };
  if (['textbox', 'constant'].includes(model.type)) {
    const value = choice ?? String(model.query ?? '');
    return { ...base, text: value, value };
  }
  const options = await offered(model, variables, range);
  if (choice !== undefined) {
    const wanted = new RegExp(`^(?:${choice})$`);
    const option = options.find((it) => wanted.test(it.text) || wanted.test(it.value));
    if (option) return { ...base, ...option };
    console.warn(`$${model.name} has no value ${choice}, only ${options.map((it) => it.text).join(', ')}`);
  }
  const current = ([] as string[]).concat(model.current?.value ?? []);
  if (model.includeAll && current.includes('$__all')) {
    if (model.allValue) return { ...base, text: 'All', value: model.allValue, isPattern: true };
    return { ...base, text: 'All', value: options.map((it) => it.value) };
  }
  const option = options.find((it) => current.includes(it.value)) ?? options[0] ?? { text: '', value: '' };
  return { ...base, ...option };
}

/** All variables of a dashboard. `choices` are regular expressions for texts or values, by variable. */
export async function resolve(board: any, choices: Record<string, string>, range: Range): Promise<Variables> {
  let open: any[] = board.templating?.list ?? [];
  const variables: Variables = new Map();
  while (open.length) {
    const names = new Set(open.map((it) => it.name));
    const references = (model: any) => [...JSON.stringify([model.query, model.regex]).matchAll(REFERENCE)];
    const free = open.filter((it) => !references(it).some((match) => names.has(match[1] ?? match[2])));
    if (!free.length) throw new Error(`variables that need each other: ${[...names].join(', ')}`);
    for (const model of free) variables.set(model.name, await resolved(model, choices[model.name], variables, range));
    open = open.filter((it) => !free.includes(it));
  }
  return variables;
}
