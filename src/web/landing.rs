//! The page at `/`: what this is, how it fares, and where the metrics are.

use std::fmt::Write;

use super::exposition::Exposition;

/// Makes text safe to stand in HTML.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, char| {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            char => out.push(char),
        }
        out
    })
}

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fabric-exporter</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<h1>fabric-exporter</h1>
"#;

/// Renders the page.
pub fn page(exposition: &Exposition, telemetry_path: &str) -> String {
    let mut page = HEAD.to_owned();
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<p>Version {}. Reads the counters of every port of the fabric and tells them to Prometheus.</p>\n\
         <ul>\n<li><a href=\"{path}\">Metrics</a></li>\n<li><a href=\"/-/healthy\">Healthy?</a></li>\n\
         <li><a href=\"/-/ready\">Ready?</a></li>\n</ul>\n\
         <table>\n<tr><th>Fabric</th><th class=\"n\">Nodes</th><th class=\"n\">Not up</th>\
         <th class=\"n\">Ports read</th><th class=\"n\">Latest sweep</th></tr>\n",
        env!("CARGO_PKG_VERSION"),
        path = escaped(telemetry_path),
    );
    for observation in exposition.board() {
        let name = escaped(&observation.fabric);
        let _ = match &observation.snapshot {
            None => writeln!(page, "<tr><td>{name}</td><td colspan=\"4\">not swept yet</td></tr>"),
            Some(last) => writeln!(
                page,
                "<tr><td>{name}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.3} s</td></tr>",
                last.fabric.nodes.len(),
                last.fabric.node_indexes().filter(|&node| !last.is_up(node)).count(),
                last.readings.iter().flatten().count(),
                last.ended.since(last.began).as_secs_f64(),
            ),
        };
    }
    page.push_str("</table>\n</body>\n</html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Observation;
    use std::sync::Arc;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let observation = Observation { fabric: "<script>\"&".into(), ..Observation::default() };
        let exposition = Exposition::render(vec![Arc::new(observation)]);
        let page = page(&exposition, "/m\"");
        assert!(page.contains("&lt;script&gt;&quot;&amp;") && !page.contains("<script>"));
        assert!(page.contains("href=\"/m&quot;\""));
    }
}
