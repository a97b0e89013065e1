// State timelines, status histories and heat maps. Grafana does not export its components for them: these
// are plain drawings with the same texts, colors and thresholds.
import { type DataFrame, FieldType, dateTimeFormat, getDisplayProcessor, getFieldDisplayName } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';

import { type Range } from './prometheus';

type Drawing = { panel: any; data: DataFrame[]; width: number; height: number; range: Range };

const [AXIS, LEGEND, FONT] = [20, 24, 12];

const widthOf = (text: string) => text.length * FONT * 0.55;

function clipped(text: string, width: number): string {
  const letters = Math.floor(width / (FONT * 0.55));
  return text.length <= letters ? text : `${text.slice(0, Math.max(0, letters - 1))}…`;
}

function TimeAxis({ left, right, y, range }: { left: number; right: number; y: number; range: Range }) {
  const theme = useTheme2();
  const count = Math.max(2, Math.floor((right - left) / 110));
  const ticks = Array.from({ length: count }, (_, index) => (index + 0.5) / count);
  return ticks.map((part) => (
    <text key={part} x={left + part * (right - left)} y={y + 15} textAnchor="middle" fill={theme.colors.text.secondary}>
      {dateTimeFormat(range.from + part * (range.to - range.from), { format: 'HH:mm:ss', timeZone: 'utc' })}
    </text>
  ));
}

type Cell = { from: number; to: number; text: string; color: string };

/** A row for each series: equal neighbors are one bar in a state timeline, and a cell each in a status history. */
export function Timeline({ panel, data, width, height, range }: Drawing) {
  const theme = useTheme2();
  const isHistory = panel.type === 'status-history';
  const merges = !isHistory && panel.options.mergeValues;
  const rows = data.flatMap((frame) => {
    const times = frame.fields.find((field) => field.type === FieldType.time)!;
    return frame.fields.filter((field) => field !== times).map((field) => {
      const step = times.config.interval ?? 0;
      const display = field.display ?? getDisplayProcessor({ field, theme });
      const cells: Cell[] = [];
      field.values.forEach((value: number, index: number) => {
        const from = times.values[index];
        const shown = display(value);
        const [text, color] = [`${shown.prefix ?? ''}${shown.text}${shown.suffix ?? ''}`, shown.color ?? '#888'];
        const last = cells.at(-1);
        if (merges && last && last.text === text && from <= last.to + step) last.to = from + step;
        else cells.push({ from, to: from + step, text, color });
      });
      return { name: getFieldDisplayName(field, frame, data), cells };
    });
  });
  const labels = Math.min(Math.max(...rows.map(({ name }) => widthOf(name))) + 8, width / 3);
  const legend = panel.options.legend?.showLegend ? LEGEND : 0;
  const rowHeight = (height - AXIS - legend) / rows.length;
  const part = (time: number) => Math.min(Math.max((time - range.from) / (range.to - range.from), 0), 1);
  const x = (time: number) => labels + part(time) * (width - labels);
  const bar = rowHeight * (panel.options.rowHeight ?? 0.9);
  const gap = isHistory ? 1 - (panel.options.colWidth ?? 0.9) : 0;
  return (
    <svg width={width} height={height} fontSize={FONT}>
      {rows.map(({ name, cells }, row) => {
        const middle = (row + 0.5) * rowHeight;
        return (
          <g key={row}>
            {rowHeight > 8 && (
              <text x={labels - 6} y={middle + 4} textAnchor="end" fill={theme.colors.text.secondary}>
                {clipped(name, labels - 8)}
              </text>
            )}
            {cells.map(({ from, to, text, color }) => {
              const [left, right] = [x(from), x(to)];
              const wide = Math.max((right - left) * (1 - gap), 0.5);
              const fits = !isHistory && panel.options.showValue !== 'never' && widthOf(text) + 8 < wide && bar > FONT;
              return (
                <g key={from}>
                  <rect x={left} y={middle - bar / 2} width={wide} height={bar} fill={color} fillOpacity={0.8} />
                  {fits && (
                    <text x={left + 4} y={middle + 4} fill={theme.colors.getContrastText(color)}>{text}</text>
                  )}
                </g>
              );
            })}
          </g>
        );
      })}
      <TimeAxis left={labels} right={width} y={height - AXIS - legend} range={range} />
      {legend > 0 && <Legend panel={panel} y={height - 6} />}
    </svg>
  );
}

/** The mappings and thresholds of a panel, as Grafana's legend lists them. */
function Legend({ panel, y }: { panel: any; y: number }) {
  const theme = useTheme2();
  const { thresholds, mappings = [], color } = panel.fieldConfig.defaults;
  if (color?.mode?.startsWith('continuous')) return null;
  const steps = (thresholds?.steps ?? []).map((step: any, index: number, all: any[]) => {
    const text = step.value === null ? `< ${all[index + 1]?.value ?? '∞'}` : `${step.value}+`;
    return { text, color: step.color };
  });
  const mapped = mappings.flatMap((mapping: any) =>
    mapping.type === 'value' ? Object.values(mapping.options) : [mapping.options.result],
  );
  let x = 0;
  return [...(mapped.length ? mapped : steps)].filter((it: any) => it.text).map((it: any) => {
    const left = x;
    x += widthOf(it.text) + 32;
    return (
      <g key={left}>
        <rect x={left} y={y - 8} width={14} height={4} fill={theme.visualization.getColorByName(it.color ?? 'gray')} />
        <text x={left + 18} y={y} fill={theme.colors.text.primary}>{it.text}</text>
      </g>
    );
  });
}

/** A heat map of the buckets of a histogram: a row for each bucket, in shades of one color. */
export function HeatMap({ panel, data, width, height, range }: Drawing) {
  const theme = useTheme2();
  const bound = (field: any) => Number(field.labels?.le?.replace('+Inf', 'Infinity') ?? NaN);
  const series = data
    .map((frame) => ({ times: frame.fields[0], counts: frame.fields[1] }))
    .sort((a, b) => bound(a.counts) - bound(b.counts));
  // Each bucket includes those below.
  const below = new Map<number, number>();
  const rows = series.map(({ times, counts }) => ({
    name: String(counts.labels?.le ?? ''),
    step: times.config.interval ?? 0,
    cells: times.values.map((time: number, index: number) => {
      const count = counts.values[index];
      const own = count - (below.get(time) ?? 0);
      below.set(time, count);
      return { time, own };
    }),
  }));
  const most = Math.max(...rows.flatMap(({ cells }) => cells.map(({ own }) => own)), 1e-9);
  const least = panel.options.filterValues?.le ?? 0;
  const labels = 60;
  const rowHeight = (height - AXIS) / rows.length;
  const x = (time: number) => labels + ((time - range.from) / (range.to - range.from)) * (width - labels);
  const fill = theme.visualization.getColorByName(panel.options.color?.fill ?? 'dark-orange');
  return (
    <svg width={width} height={height} fontSize={FONT}>
      {rows.map(({ name, step, cells }, row) => {
        const top = height - AXIS - (row + 1) * rowHeight;
        return (
          <g key={name}>
            {(row % Math.ceil(16 / rowHeight) === 0) && (
              <text x={labels - 6} y={top + rowHeight / 2 + 4} textAnchor="end" fill={theme.colors.text.secondary}>
                {name}
              </text>
            )}
            {cells.filter(({ own }: any) => own > least).map(({ time, own }: any) => (
              <rect
                key={time}
                x={x(time)}
                y={top}
                width={Math.max(1, x(time + step) - x(time) - 1)}
                height={rowHeight - 1}
                fill={fill}
                fillOpacity={(own / most) ** (panel.options.color?.exponent ?? 0.5)}
              />
            ))}
          </g>
        );
      })}
      <TimeAxis left={labels} right={width} y={height - AXIS} range={range} />
    </svg>
  );
}
