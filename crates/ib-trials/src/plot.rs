//! Plots as SVG, readable on light and on dark pages.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 34.0;
const COLORS: [&str; 8] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#888888", "#cc6611"];

/// The first bars are those of the verdicts.
const OWN: usize = 4;
const DECADES: i32 = 8;

/// A curve: its name, and its points.
pub type Curve<'a> = (&'a str, Vec<(f64, f64)>);

fn begin(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-size=\"14\">{}</text>\n",
        escape(title)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The share of faults that were found, from 0 to 1, by the time since they began in minutes, from 1 to 1,440.
pub fn found_by_time(title: &str, curves: &[Curve]) -> String {
    let (height, bottom) = (360.0, 320.0);
    let x = |minutes: f64| {
        LEFT + (WIDTH - LEFT - RIGHT) * minutes.clamp(1.0, 1440.0).ln() / 1440_f64.ln()
    };
    let y = |share: f64| bottom - (bottom - TOP) * share;
    let mut svg = begin(height, title);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{2:.1}\" y=\"{3:.1}\" text-anchor=\"end\">{4:.0}%</text>",
            WIDTH - RIGHT,
            y(share),
            LEFT - 6.0,
            y(share) + 4.0,
            share * 100.0
        );
    }
    for (minutes, label) in [
        (1.0, "1 min"),
        (5.0, "5"),
        (10.0, "10"),
        (30.0, "30"),
        (60.0, "1 h"),
        (180.0, "3"),
        (480.0, "8"),
        (1440.0, "24 h"),
    ] {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#eeeeee\"/>\
             <text x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{label}</text>",
            x(minutes),
            bottom + 18.0
        );
    }
    for (nth, (name, points)) in curves.iter().enumerate() {
        let color = COLORS[nth % COLORS.len()];
        let mut path = String::new();
        for (minutes, share) in points {
            let _ = write!(path, "{:.1},{:.1} ", x(*minutes), y(*share));
        }
        let at = TOP + 16.0 * nth as f64 + 8.0;
        let _ = writeln!(
            svg,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <line x1=\"{0}\" x2=\"{1}\" y1=\"{at}\" y2=\"{at}\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <text x=\"{2}\" y=\"{3}\">{4}</text>",
            WIDTH - RIGHT + 10.0,
            WIDTH - RIGHT + 30.0,
            WIDTH - RIGHT + 36.0,
            at + 4.0,
            escape(name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Bars on a logarithmic scale from 0.1 to 10 to the [`DECADES`]: a value, and the upper bound as a thin line.
pub fn bars(title: &str, rows: &[(&str, f64, f64)]) -> String {
    let (left, step) = (270.0, 30.0);
    let bottom = TOP + step * rows.len() as f64;
    let x = |value: f64| {
        let share = (value.max(0.1).log10() + 1.0) / (f64::from(DECADES) + 1.0);
        left + (WIDTH - left - 30.0) * share.min(1.0)
    };
    let mut svg = begin(bottom + 34.0, title);
    for decade in -1..=DECADES {
        let at = x(10_f64.powi(decade));
        let label = match decade {
            ..0 => "0.1".to_owned(),
            0..3 => 10_u64.pow(decade.unsigned_abs()).to_string(),
            3..6 => format!("{}k", 10_u64.pow(decade.unsigned_abs() - 3)),
            _ => format!("{}M", 10_u64.pow(decade.unsigned_abs() - 6)),
        };
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            bottom + 18.0
        );
    }
    for (nth, (name, value, upper)) in rows.iter().enumerate() {
        let y = TOP + step * nth as f64 + 6.0;
        let _ = writeln!(
            svg,
            "<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{2}</text>\
             <rect x=\"{left}\" y=\"{y}\" width=\"{3:.1}\" height=\"16\" fill=\"{4}\"/>\
             <line x1=\"{left}\" x2=\"{5:.1}\" y1=\"{6}\" y2=\"{6}\" stroke=\"#333333\"/>",
            left - 6.0,
            y + 13.0,
            escape(name),
            x(*value) - left,
            if nth < OWN { COLORS[0] } else { COLORS[6] },
            x(*upper),
            y + 8.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}
