// The page that headless Chromium loads: /?board=cable&theme=dark draws dashboards/cable.json.
import { createTheme, ThemeContext } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { GlobalStyles } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

import { Board } from './board';

declare global {
  interface Window {
    /** How many panels are not drawn yet; undefined before the first. */
    pictures: { open?: number };
  }
}

window.pictures = {};
const asked = new URLSearchParams(location.search);
const name = asked.get('board')!;
const json = async (path: string) => (await fetch(path)).json();
const [board, range, choices] = await Promise.all([
  json(`/boards/${name}.json`),
  json('/range.json'),
  json('/choices.json'),
]);
// Graphs fail without.
await initPluginTranslations('pictures');
const theme = createTheme({ colors: { mode: asked.get('theme') === 'light' ? 'light' : 'dark' } });
createRoot(document.getElementById('root')!).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles isExtensionSidebarOpen={false} />
    <Board board={board} choices={choices[name] ?? {}} range={range} />
  </ThemeContext.Provider>,
);
