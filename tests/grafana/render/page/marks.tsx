// The events of a dashboard as marks in its graphs: Grafana's own component for this is not exported.
import { type DataFrame } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';
import { useLayoutEffect } from 'react';

import { type Range, frames } from './prometheus';
import { type Variables } from './variables';

export type Mark = { time: number; color: string };

/** The marks of all events that are on. */
export async function marks(board: any, points: number, range: Range, variables: Variables): Promise<Mark[]> {
  const events = (board.annotations?.list ?? []).filter((it: any) => it.enable && it.target?.expr);
  const found = events.map(async (event: any) => {
    const target = { ...event.target, instant: false, format: 'time_series', interval: event.step };
    const series: DataFrame[] = await frames([target], points, range, variables);
    const moments = series.flatMap(({ fields: [times, values], length }) =>
      Array.from({ length }, (_, index) => ({ time: times.values[index], value: values.values[index] })),
    );
    // A value is an event if it is positive; or the event is at the time that the value is.
    const times = event.useValueForTime
      ? moments.map(({ value }) => value)
      : moments.filter(({ value }) => value > 0).map(({ time }) => time);
    const inside = [...new Set<number>(times)].filter((time) => time >= range.from && time <= range.to);
    return inside.map((time) => ({ time, color: event.iconColor }));
  });
  return (await Promise.all(found)).flat();
}

export function Marks({ config, marks }: { config: any; marks: Mark[] }) {
  const theme = useTheme2();
  useLayoutEffect(() => {
    config.addHook('draw', (plot: any) => {
      const { ctx, bbox } = plot;
      ctx.save();
      for (const { time, color } of marks) {
        const x = Math.round(plot.valToPos(time, 'x', true));
        ctx.strokeStyle = ctx.fillStyle = theme.visualization.getColorByName(color);
        ctx.setLineDash([5, 5]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.beginPath();
        ctx.moveTo(x - 5, bbox.top + bbox.height + 6);
        ctx.lineTo(x + 5, bbox.top + bbox.height + 6);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.fill();
      }
      ctx.restore();
    });
  }, [config]);
  return null;
}
