//! The page at `/`: what this is, how it fares, and where the metrics are.

use std::fmt::Write;
use std::sync::Arc;

use crate::fabric::status;
use crate::monitor::Observation;
use crate::monitor::host::HostObservation;

use super::api;
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
        "<p>Version {}. Reads the counters of InfiniBand and RoCE ports and tells them to Prometheus.</p>\n\
         <ul>\n<li><a href=\"{path}\">Metrics</a></li>\n\
         <li><a href=\"{links}?suspect=true\">Suspect links</a> as JSON (<a href=\"{links}\">all</a>)</li>\n\
         <li><a href=\"/-/healthy\">Healthy?</a></li>\n\
         <li><a href=\"/-/ready\">Ready?</a></li>\n</ul>\n",
        env!("CARGO_PKG_VERSION"),
        path = escaped(telemetry_path),
        links = api::LINKS,
    );
    let board = exposition.board();
    if !board.fabrics.is_empty() {
        fabrics(&mut page, &board.fabrics);
    }
    if let Some(host) = &board.host {
        devices(&mut page, host);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn fabrics(page: &mut String, fabrics: &[Arc<Observation>]) {
    page.push_str(
        "<table>\n<tr><th>Fabric</th><th class=\"n\">Nodes</th><th class=\"n\">Not up</th>\
         <th class=\"n\">Ports read</th><th class=\"n\">Latest sweep</th></tr>\n",
    );
    for observation in fabrics {
        let name = escaped(&observation.fabric);
        // Writing to a string does not fail.
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
    page.push_str("</table>\n");
}

fn devices(page: &mut String, host: &HostObservation) {
    let devices = host.snapshot.as_ref().map(|last| &last.devices[..]).unwrap_or_default();
    if devices.is_empty() {
        page.push_str("<p>No RDMA device on this host was read yet.</p>\n");
        return;
    }
    page.push_str(
        "<table>\n<tr><th>Device of this host</th><th class=\"n\">Port</th><th>Layer</th>\
         <th>State</th><th class=\"n\">Rate</th><th>Interfaces</th></tr>\n",
    );
    for device in devices {
        let name = escaped(&device.name);
        if !device.answers {
            let _ = writeln!(page, "<tr><td>{name}</td><td colspan=\"5\">hangs</td></tr>");
        }
        for port in &device.ports {
            let gbps = |rate| format!("{} Gb/s", rate as f64 * 8.0 / 1e9);
            let netdevs: Vec<_> = port.netdevs.iter().map(|netdev| &*netdev.name).collect();
            let _ = writeln!(
                page,
                "<tr><td>{name}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
                port.number,
                escaped(&port.link_layer),
                port.state.map_or("unknown", status::state::name),
                port.rate.map(gbps).unwrap_or_default(),
                escaped(&netdevs.join(", ")),
            );
        }
    }
    page.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let observation = Observation { fabric: "<script>\"&".into(), ..Observation::default() };
        let exposition = Exposition::render(vec![Arc::new(observation)].into());
        let page = page(&exposition, "/m\"");
        assert!(page.contains("&lt;script&gt;&quot;&amp;") && !page.contains("<script>"));
        assert!(page.contains("href=\"/m&quot;\""));
    }
}
