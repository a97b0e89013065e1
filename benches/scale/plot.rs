//! The plot of docs/dev/measurements.md: cost per port by the size of the fabric.

use std::fmt::Write;

use crate::Cost;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 260.0;
/// Left, right, top, bottom.
const MARGINS: (f64, f64, f64, f64) = (46.0, 14.0, 40.0, 40.0);

/// One plot: its value of each cost, and the line of the target.
struct Panel {
    title: &'static str,
    of: fn(&Cost) -> f64,
    wanted: Option<f64>,
}

/// Two panels side by side as SVG, readable on light and dark pages.
pub fn svg(costs: &[Cost]) -> String {
    let panels = [
        Panel { title: "CPU time per port and sweep, µs", of: Cost::micros_a_port, wanted: None },
        Panel { title: "memory per port, KiB", of: |cost| cost.kib, wanted: Some(4.0) },
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>Cost per port by the size of the \
         fabric</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        WIDTH * panels.len() as f64
    );
    for (index, panel) in panels.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate({},0)\">", WIDTH * index as f64);
        draw(&mut svg, panel, costs);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, panel: &Panel, costs: &[Cost]) {
    let (left, right, top, bottom) = MARGINS;
    let (low, high) = (500f64.log10(), 300_000f64.log10());
    let x = |ports: f64| left + (ports.log10() - low) / (high - low) * (WIDTH - left - right);
    let most = costs.iter().map(panel.of).chain(panel.wanted).fold(1.0, f64::max);
    // At most nine lines.
    let step = [1u32, 2, 5, 10, 20, 50, 100].into_iter().find(|step| f64::from(8 * step) >= most);
    let step = step.unwrap_or(1_000);
    let lines = (step..).step_by(step as usize);
    let end = lines.take(1_000).find(|end| f64::from(*end) >= most).unwrap_or(step);
    let y = |value: f64| HEIGHT - bottom - value / f64::from(end) * (HEIGHT - top - bottom);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"20\" font-weight=\"bold\" fill=\"#222\">{}</text>",
        panel.title
    );
    for value in (0..=end).step_by(step as usize) {
        let at = y(f64::from(value));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{value}</text>",
            WIDTH - right,
            left - 6.0,
            at + 4.0
        );
    }
    for (ports, label) in [(1e3, "1,000"), (1e4, "10,000"), (1e5, "100,000")] {
        let at = x(ports);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{label}</text>",
            HEIGHT - bottom + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">connected ports</text>",
        (left + WIDTH - right) / 2.0,
        HEIGHT - 6.0
    );
    if let Some(wanted) = panel.wanted {
        let at = y(wanted);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#c33\" \
             stroke-dasharray=\"5 4\"/>",
            WIDTH - right
        );
    }
    let points = costs.iter().map(|cost| (x(cost.ports), y((panel.of)(cost))));
    let path: Vec<String> = points.clone().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1668b0\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for (x, y) in points {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#1668b0\"/>");
    }
}
