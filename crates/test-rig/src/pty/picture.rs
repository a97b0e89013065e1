//! The screen of a terminal as SVG: its characters, colors and attributes, one element for each run of equal cells.

use std::fmt::Write;

use vt100::{Cell, Color, Screen};

/// The width and height of a character, in the units of the picture.
const CHARACTER: (f32, f32) = (8.4, 18.0);

/// The colors of a usual terminal: black to white, then the bright ones.
const COLORS: [&str; 16] = [
    "#1e1e1e", "#f14c4c", "#23d18b", "#e5e510", "#3b8eea", "#d670d6", "#29b8db", "#d4d4d4",
    "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];

/// What a run of cells has in common: text color, background, bold, faint.
type Look = (&'static str, &'static str, bool, bool);

fn look(cell: &Cell) -> Look {
    let color = |color: Color, usual: usize| match color {
        Color::Idx(index) => COLORS[usize::from(index) % COLORS.len()],
        Color::Default | Color::Rgb(..) => COLORS[usual],
    };
    let (front, back) = (color(cell.fgcolor(), 7), color(cell.bgcolor(), 0));
    let (front, back) = if cell.inverse() { (back, front) } else { (front, back) };
    (front, back, cell.bold(), cell.dim())
}

/// The picture of a screen.
pub(super) fn svg(screen: &Screen, title: &str) -> String {
    let (rows, columns) = screen.size();
    let (width, height) = (f32::from(columns) * CHARACTER.0, f32::from(rows) * CHARACTER.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 -8 {:.1} {:.1}\" role=\"img\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n<title>{title}</title>\n\
         <rect x=\"-8\" y=\"-8\" width=\"{:.1}\" height=\"{:.1}\" rx=\"6\" fill=\"{}\"/>\n",
        width + 16.0,
        height + 16.0,
        width + 16.0,
        height + 16.0,
        COLORS[0]
    );
    for row in 0..rows {
        let cells: Vec<&Cell> =
            (0..columns).filter_map(|column| screen.cell(row, column)).collect();
        let mut column = 0;
        for run in cells.chunk_by(|a, b| look(a) == look(b)) {
            let text: String = run
                .iter()
                .map(|cell| if cell.has_contents() { cell.contents() } else { " " })
                .collect();
            write_run(&mut svg, row, column, run.len(), &text, look(run[0]));
            column += run.len();
        }
    }
    svg + "</svg>\n"
}

fn write_run(svg: &mut String, row: u16, column: usize, length: usize, text: &str, look: Look) {
    let (front, back, bold, dim) = look;
    let (x, y) = (column as f32 * CHARACTER.0, f32::from(row) * CHARACTER.1);
    let width = length as f32 * CHARACTER.0;
    let mut add = |text: String| svg.write_str(&text).expect("a string takes text");
    if back != COLORS[0] {
        let height = CHARACTER.1;
        add(format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{back}\"/>\n"
        ));
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    let opacity = if dim { " opacity=\"0.6\"" } else { "" };
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    let baseline = y + 13.5;
    // The length keeps columns aligned in any font.
    add(format!(
        "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\" fill=\"{front}\"{weight}{opacity}>{escaped}</text>\n"
    ));
}
