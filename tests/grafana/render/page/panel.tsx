// A panel: its frame, and in it what Grafana's components draw of its data.
import {
  type DataFrame,
  type DisplayValueAlignmentFactors,
  type FieldDisplay,
  FieldType,
  type TimeRange,
  VizOrientation,
  dateTime,
  getDisplayValueAlignmentFactors,
  getFieldDisplayValues,
} from '@grafana/data';
import {
  BarGauge,
  BigValue,
  BigValueTextMode,
  PanelChrome,
  TimeSeries,
  VizRepeater,
  type VizRepeaterRenderValueProps,
  useTheme2,
} from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { useEffect, useState } from 'react';

import { prepared } from './fields';
import { type Mark, Marks } from './marks';
import { HeatMap, Timeline } from './plain';
import { type Range, frames } from './prometheus';
import { type Variables, readable } from './variables';

type Box = { width: number; height: number };
type Drawing = Box & { panel: any; data: DataFrame[]; range: Range; marks: Mark[] };

export function Panel(props: Box & {
  panel: any;
  variables: Variables;
  range: Range;
  marks: Mark[];
  settled: () => void;
}) {
  const { panel, width, height, variables, range, marks, settled } = props;
  const theme = useTheme2();
  const [data, setData] = useState<DataFrame[]>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    const points = panel.maxDataPoints ?? Math.max(1, Math.round(width));
    frames(panel.targets ?? [], points, range, variables)
      .then((found) => prepared(panel, found, variables, theme))
      .then(setData, (problem) => {
        console.error(`${panel.title}: ${problem.stack ?? problem}`);
        setError(String(problem));
      });
  }, []);
  useEffect(() => {
    if (data || error) settled();
  }, [data, error]);
  const plain = ['state-timeline', 'status-history', 'heatmap'].includes(panel.type);
  const items = plain ? [<small key="plain">drawn plainly</small>] : undefined;
  const title = readable(panel.title ?? '', variables);
  return (
    <PanelChrome title={title} description={panel.description} width={width} height={height} titleItems={items}>
      {(innerWidth, innerHeight) => {
        if (error) return <Message>{error}</Message>;
        if (!data) return null;
        const box = { width: innerWidth, height: innerHeight };
        return <Drawn {...box} panel={panel} data={data} range={range} marks={marks} />;
      }}
    </PanelChrome>
  );
}

function Message({ children }: { children: string }) {
  return <div className="message">{children}</div>;
}

function Drawn(props: Drawing) {
  const { panel, data } = props;
  const isEmpty = !data.some((frame) => frame.fields.length && frame.length);
  // These show `noValue` themselves.
  if (isEmpty && !['stat', 'bargauge'].includes(panel.type)) {
    return <Message>{panel.fieldConfig?.defaults?.noValue || 'No data'}</Message>;
  }
  switch (panel.type) {
    case 'timeseries':
      return <Graph {...props} />;
    case 'stat':
    case 'bargauge':
      return <Values {...props} />;
    case 'table':
      return <Table {...props} />;
    case 'state-timeline':
    case 'status-history':
      return <Timeline {...props} />;
    case 'heatmap':
      return <HeatMap {...props} />;
    case 'text':
      return <pre>{panel.options.content}</pre>;
    default:
      return <Message>{`A panel of the type ${panel.type}: not drawn here`}</Message>;
  }
}

export function span(range: Range): TimeRange {
  const [from, to] = [dateTime(range.from), dateTime(range.to)];
  return { from, to, raw: { from, to } };
}

function Graph({ panel, data, width, height, range, marks }: Drawing) {
  const { legend, tooltip } = panel.options;
  // Instant queries have one point, and text no graph.
  const numbers = data.filter((frame) => frame.fields.some((field) => field.type === FieldType.number));
  return (
    <TimeSeries
      frames={numbers}
      structureRev={1}
      timeRange={span(range)}
      timeZone="utc"
      width={width}
      height={height}
      legend={legend}
      options={{ legend, tooltip } as any}
    >
      {(config: any) => <Marks config={config} marks={marks} />}
    </TimeSeries>
  );
}

function Values({ panel, data, width, height }: Drawing) {
  const theme = useTheme2();
  const { options, fieldConfig } = panel;
  const isGauge = panel.type === 'bargauge';
  const values = () =>
    getFieldDisplayValues({
      fieldConfig,
      reduceOptions: options.reduceOptions,
      replaceVariables: (text) => text,
      theme,
      data,
      sparkline: false,
      timeZone: 'utc',
    });
  const value = ({ value, width, height, count, orientation, alignmentFactors }: Repeated) => {
    if (isGauge) {
      return (
        <BarGauge
          value={value.display}
          width={width}
          height={height}
          orientation={orientation}
          field={value.field}
          text={options.text}
          display={value.view?.getFieldDisplayProcessor(value.colIndex!)}
          theme={theme}
          itemSpacing={itemSpacing()}
          lcdCellWidth={12}
          displayMode={options.displayMode}
          alignmentFactors={alignmentFactors}
          showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode}
          namePlacement={options.namePlacement}
        />
      );
    }
    // As in Grafana's panel: a display name, or no title, shows the name.
    const { displayName } = fieldConfig.defaults;
    const isNamed = options.textMode === 'auto' && (displayName || !panel.title);
    return (
      <BigValue
        value={value.display}
        count={count}
        width={width}
        height={height}
        colorMode={options.colorMode}
        graphMode={options.graphMode}
        justifyMode={options.justifyMode}
        textMode={isNamed ? BigValueTextMode.ValueAndName : options.textMode}
        alignmentFactors={alignmentFactors}
        text={options.text}
        theme={theme}
        wideLayout={options.wideLayout}
      />
    );
  };
  const itemSpacing = () => (options.displayMode === 'lcd' ? 2 : 10);
  const isHorizontal = options.orientation === 'horizontal';
  return (
    <VizRepeater<FieldDisplay, DisplayValueAlignmentFactors>
      source={data}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      getValues={values}
      renderValue={value}
      renderCounter={0}
      width={width}
      height={height}
      minVizHeight={options.minVizHeight}
      minVizWidth={options.minVizWidth}
      maxVizHeight={options.maxVizHeight}
      itemSpacing={isGauge ? itemSpacing() : 3}
      orientation={isHorizontal ? VizOrientation.Horizontal : options.orientation}
    />
  );
}

type Repeated = VizRepeaterRenderValueProps<FieldDisplay, DisplayValueAlignmentFactors>;

function Table({ panel, data, width, height }: Drawing) {
  return (
    <TableNG
      data={data[panel.options.frameIndex ?? 0] ?? data[0]}
      width={width}
      height={height}
      noHeader={!panel.options.showHeader}
      cellHeight={panel.options.cellHeight}
      sortBy={panel.options.sortBy}
      fieldConfig={panel.fieldConfig}
      structureRev={1}
      enableVirtualization
      getActions={() => []}
      replaceVariables={(text: string) => text}
    />
  );
}
