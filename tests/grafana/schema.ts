// What a dashboard of ours may be, by the types that Grafana itself is built with. Their Dashboard leaves
// open what depends on the kind of a panel: options, fieldConfig.custom, overrides, queries. Here each
// kind gets its own. What Grafana keeps elsewhere, transformations and matchers, is written out as far
// as the dashboards use it.
import type * as grafana from '@grafana/schema';
import type * as bargauge from 'panel/bargauge';
import type * as gauge from 'panel/gauge';
import type * as heatmap from 'panel/heatmap';
import type * as stat from 'panel/stat';
import type * as statetimeline from 'panel/statetimeline';
import type * as statushistory from 'panel/statushistory';
import type * as table from 'panel/table';
import type * as text from 'panel/text';
import type * as timeseries from 'panel/timeseries';
import type * as prometheus from 'query/prometheus';
import type { Given } from 'version';

/** A type as it is in JSON: of an enumeration, its values. */
type Json<T> = unknown extends T
  ? unknown
  : T extends string
    ? `${T}`
    : T extends number
      ? `${T}` extends `${infer N extends number}`
        ? N
        : T
      : T extends (infer E)[]
        ? Json<E>[]
        : T extends object
          ? { [K in keyof T]: Json<T[K]> }
          : T;

type Source = { type: 'prometheus'; uid: '${datasource}' };

type DataLink = { title: string; url: string; targetBlank?: boolean };

type Defaults<Custom> = Omit<Json<grafana.FieldConfig>, 'custom' | 'links'> & {
  custom?: Json<Custom>;
  links?: DataLink[];
};

type Plain = Required<Omit<Defaults<never>, 'custom'>>;

type Property<Custom> =
  | { [K in keyof Plain & string]: { id: K; value: Plain[K] } }[keyof Plain & string]
  | { [K in keyof Custom & string]-?: { id: `custom.${K}`; value: Json<NonNullable<Custom[K]>> } }[keyof Custom & string];

type Override<Custom> = {
  matcher: { id: 'byName' | 'byRegexp'; options: string };
  properties: Property<Custom>[];
};

type Transformation =
  | { id: 'merge'; options: Record<string, never> }
  | {
      id: 'organize';
      options: {
        excludeByName: Record<string, boolean>;
        indexByName: Record<string, number>;
        renameByName: Record<string, string>;
      };
    };

type Query = Omit<Json<prometheus.PrometheusDataQuery>, 'datasource'> & { datasource: Source };

type Open = 'datasource' | 'fieldConfig' | 'gridPos' | 'options' | 'targets' | 'transformations' | 'type';

type Kind<Type extends string, Options, Custom> = Omit<Json<grafana.Panel>, Open> & {
  type: Type;
  id: number;
  title: string;
  gridPos: Json<grafana.GridPos>;
  options: Given<Json<Options>>;
};

type Drawn<Type extends string, Options, Custom = Record<string, never>> = Kind<Type, Options, Custom> & {
  datasource: Source;
  fieldConfig: { defaults: Defaults<Custom>; overrides: Override<Custom>[] };
  targets: Query[];
  transformations?: Transformation[];
};

type Panel =
  | Drawn<'bargauge', bargauge.Options>
  | Drawn<'gauge', gauge.Options>
  | Drawn<'heatmap', heatmap.Options, heatmap.FieldConfig>
  | Drawn<'stat', stat.Options>
  | Drawn<'state-timeline', statetimeline.Options, statetimeline.FieldConfig>
  | Drawn<'status-history', statushistory.Options, statushistory.FieldConfig>
  | Drawn<'table', table.Options, table.FieldConfig>
  | Drawn<'timeseries', timeseries.Options, timeseries.FieldConfig>
  | Kind<'text', text.Options, never>;

type Row = Omit<Json<grafana.RowPanel>, 'panels' | 'type'> & { type: 'row'; panels: Panel[] };

type Variable = Omit<Json<grafana.VariableModel>, 'current' | 'datasource' | 'query'> & {
  current: Json<grafana.VariableOption> | Record<string, never>;
  datasource?: Source;
  query: string | { query: string; refId: string };
};

/** The data source of Prometheus defines what an event has besides its query. */
type Event = Omit<Json<grafana.AnnotationQuery>, 'datasource' | 'target'> & {
  datasource: Source;
  target: Query;
  titleFormat: string;
  textFormat: string;
  useValueForTime: boolean;
};

export type Board = Omit<Json<grafana.Dashboard>, 'annotations' | 'id' | 'panels' | 'templating'> & {
  uid: string;
  title: string;
  annotations: { list: [Json<grafana.AnnotationQuery>, ...Event[]] };
  panels: (Panel | Row)[];
  templating: { list: Variable[] };
};
