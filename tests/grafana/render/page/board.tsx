// A dashboard: its variables on top, its panels on Grafana's grid, its rows opened below.
import { dateTimeFormat } from '@grafana/data';
import { useStyles2, useTheme2 } from '@grafana/ui';
import { css } from '@emotion/css';
import { useEffect, useState } from 'react';

import { type Mark, marks } from './marks';
import { Panel } from './panel';
import { type Range } from './prometheus';
import { type Variables, readable, resolve } from './variables';

// Grafana's grid: 24 columns, rows of 30 px, 8 px between panels. Below 769 px panels are in one column.
const [COLUMNS, CELL, GAP, NARROW, PADDING] = [24, 30, 8, 769, 16];

type Section = { title?: string; panels: any[] };

/** The panels that are visible when a dashboard opens, then the rows that can be opened, each with its panels. */
function sections(board: any): Section[] {
  const all: any[] = board.panels ?? [];
  const isClosed = (panel: any) => panel.type === 'row' && panel.collapsed;
  const top = all.filter((panel) => !isClosed(panel));
  return [{ panels: top }, ...all.filter(isClosed).map(({ title, panels }) => ({ title, panels }))];
}

export function Board({ board, choices, range }: { board: any; choices: Record<string, string>; range: Range }) {
  const [known, setKnown] = useState<{ variables: Variables; events: Mark[] }>();
  const styles = useStyles2(style);
  const width = window.innerWidth - 2 * PADDING;
  useEffect(() => {
    const load = async () => {
      const variables = await resolve(board, choices, range);
      // Grafana asks for events once, for a graph of the width of the dashboard.
      return { variables, events: await marks(board, width, range, variables) };
    };
    load().then(setKnown, (problem) => {
      console.error(`${board.title}: ${problem.stack ?? problem}`);
      window.pictures.open = 0;
    });
  }, []);
  if (!known) return null;
  const all = sections(board);
  window.pictures.open ??= all.flatMap(({ panels }) => panels).filter((panel) => panel.type !== 'row').length;
  const time = (at: number) => dateTimeFormat(at, { format: 'HH:mm', timeZone: 'utc' });
  return (
    <div className={styles}>
      {all.map((section, index) => (
        <div key={index} data-section={index} className="section">
          {index === 0 && (
            <>
              <h1>
                {board.title} <span>{`${time(range.from)} to ${time(range.to)} UTC`}</span>
              </h1>
              <div className="variables">
                {[...known.variables.values()].filter((it) => !it.hidden).map(({ name, label, text }) => (
                  <div key={name}><b>{label}</b><i>{text || '\u00a0'}</i></div>
                ))}
              </div>
            </>
          )}
          {index > 0 && <div className="row">{`⌄ ${readable(section.title ?? '', known.variables)}`}</div>}
          <Grid {...{ ...section, width, range, ...known }} />
          {index === 0 &&
            all.slice(1).map(({ title, panels }) => (
              <div key={title} className="row">
                {`› ${readable(title ?? '', known.variables)} `}
                <span>{`(${panels.length} panel${panels.length === 1 ? '' : 's'})`}</span>
              </div>
            ))}
        </div>
      ))}
    </div>
  );
}

function Grid(props: { panels: any[]; width: number; variables: Variables; events: Mark[]; range: Range }) {
  const { panels, width, variables, events, range } = props;
  const isNarrow = window.innerWidth < NARROW;
  const column = (width - (COLUMNS - 1) * GAP) / COLUMNS;
  const top = Math.min(...panels.map(({ gridPos }) => gridPos.y));
  const across = (cells: number) => cells * column + (cells - 1) * GAP;
  const down = (cells: number) => cells * CELL + (cells - 1) * GAP;
  let next = 0;
  const placed = [...panels]
    .sort((a, b) => a.gridPos.y - b.gridPos.y || a.gridPos.x - b.gridPos.x)
    .map((panel) => {
      const { x, y, w, h } = panel.gridPos;
      if (!isNarrow) {
        const [left, above] = [x * (column + GAP), (y - top) * (CELL + GAP)];
        return { panel, box: { left, top: above, width: across(w), height: down(h) } };
      }
      const box = { left: 0, top: next, width, height: down(h) };
      next += box.height + GAP;
      return { panel, box };
    });
  const height = Math.max(...placed.map(({ box }) => box.top + box.height));
  return (
    <div style={{ position: 'relative', height }}>
      {placed.map(({ panel, box }) => (
        <div key={panel.id} style={{ position: 'absolute', ...box }}>
          {panel.type === 'row' ? (
            <div className="row">{`⌄ ${readable(panel.title, variables)}`}</div>
          ) : (
            <Panel
              {...{ panel, variables, range, marks: events, width: Math.floor(box.width), height: box.height }}
              settled={() => (window.pictures.open! -= 1)}
            />
          )}
        </div>
      ))}
    </div>
  );
}

const style = (theme: ReturnType<typeof useTheme2>) =>
  css({
    background: theme.colors.background.canvas,
    color: theme.colors.text.primary,
    '.section': { padding: PADDING, background: theme.colors.background.canvas },
    h1: { ...theme.typography.h4, margin: '0 0 8px', span: { ...theme.typography.bodySmall, float: 'right' } },
    '.variables': { display: 'flex', flexWrap: 'wrap', gap: 8, marginBottom: 8, ...theme.typography.bodySmall },
    '.variables b': { border: `1px solid ${theme.colors.border.weak}`, padding: '4px 8px', fontWeight: 500 },
    '.variables i': {
      border: `1px solid ${theme.colors.border.medium}`, padding: '4px 8px', fontStyle: 'normal',
      display: 'inline-block', maxWidth: 280, whiteSpace: 'nowrap', overflow: 'hidden', textOverflow: 'ellipsis', verticalAlign: 'bottom',
    },
    '.variables div': { display: 'flex' },
    '.row': { ...theme.typography.h6, height: CELL, lineHeight: `${CELL}px`, margin: `${GAP}px 0`, overflow: 'hidden' },
    '.row span': { color: theme.colors.text.secondary, fontSize: 12, fontWeight: 400 },
    '[style*=absolute] > .row': { margin: 0 },
    '.message': {
      display: 'flex', height: '100%', alignItems: 'center', justifyContent: 'center', textAlign: 'center',
      color: theme.colors.text.secondary,
    },
    small: { color: theme.colors.text.secondary, whiteSpace: 'nowrap', padding: '0 8px' },
  });
