// From the results of queries to what panels draw: transformations, field config, overrides.
import {
  type DataFrame,
  type Field,
  FieldConfigOptionsRegistry,
  type GrafanaTheme2,
  FieldType,
  applyFieldOverrides,
  cacheFieldDisplayNames,
  standardTransformers,
  standardTransformersRegistry,
  transformDataFrame,
} from '@grafana/data';
import { firstValueFrom } from 'rxjs';

import { type Variables, readable } from './variables';

standardTransformersRegistry.setInit(() =>
  // Some have two names there.
  [...new Map(Object.values(standardTransformers).map((it) => [it.id, it])).values()].map((transformation) => ({
    id: transformation.id,
    name: transformation.name,
    transformation: async () => transformation,
    editor: () => null,
    imageDark: '',
    imageLight: '',
  })),
);

const STANDARD = [
  'displayName', 'unit', 'min', 'max', 'decimals', 'mappings', 'thresholds', 'color', 'links', 'noValue', 'description',
  'filterable',
];

const OF_NUMBERS = ['min', 'max', 'decimals'];

/** Fields that have a property: as in Grafana, a unit is also one of text. */
const has = (id: string) => (field: Field) =>
  OF_NUMBERS.includes(id) ? field.type === FieldType.number : id !== 'mappings' || field.type !== FieldType.time;

/** The properties that the field config of a panel may have. Grafana lists them for its editor; here those in use. */
function properties(fieldConfig: any): FieldConfigOptionsRegistry {
  const custom = Object.keys(fieldConfig.defaults?.custom ?? {}).map((name) => `custom.${name}`);
  const changes: any[] = (fieldConfig.overrides ?? []).flatMap((it: any) => it.properties);
  const overridden = changes.map((property) => property.id);
  const registry = new FieldConfigOptionsRegistry();
  for (const id of new Set<string>([...STANDARD, ...custom, ...overridden])) {
    registry.register({
      id,
      path: id.replace(/^custom\./, ''),
      name: id,
      isCustom: id.startsWith('custom.'),
      process: (value: unknown) => value,
      shouldApply: has(id),
      override: () => null,
      editor: () => null,
    } as any);
  }
  return registry;
}

/** What a panel draws. */
export async function prepared(
  panel: any,
  found: DataFrame[],
  variables: Variables,
  theme: GrafanaTheme2,
): Promise<DataFrame[]> {
  const transformations = (panel.transformations ?? []).filter((it: any) => !it.disabled);
  const data = transformations.length
    ? await firstValueFrom(transformDataFrame(transformations, found, { interpolate: (text: string) => text }))
    : found;
  const fieldConfig = panel.fieldConfig ?? { defaults: {}, overrides: [] };
  const applied = applyFieldOverrides({
    data,
    fieldConfig,
    fieldConfigRegistry: properties(fieldConfig),
    replaceVariables: (text) => readable(text, variables),
    theme,
    timeZone: 'utc',
  });
  cacheFieldDisplayNames(applied);
  return applied;
}
