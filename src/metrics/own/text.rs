//! The text of a registry in the formats of a scrape.

use exposition::Format;

use super::families;

/// Appends the text of a registry, which is OpenMetrics without its end. Headers are written again: the text format names
/// families of counters as their samples, and help has no further full stop. Families without samples are left out.
pub(super) fn append(registry: &str, out: &mut Vec<u8>, format: Format) {
    let mut header = None;
    for line in registry.lines() {
        if let Some(about) = line.strip_prefix("# TYPE ") {
            let name = about.split(' ').next().unwrap_or_default();
            header = families::ALL.iter().copied().find(|family| family.name == name);
        } else if !line.starts_with('#') {
            if let Some(family) = header.take() {
                family.write_header(out, format);
            }
            append_sample(line, out);
        }
    }
}

/// The bound of a bucket is written as plain number: `0.00001`, where the library has `1e-5`. It is a label, by which
/// queries of users select.
fn append_sample(line: &str, out: &mut Vec<u8>) {
    const BOUND: &str = "le=\"";
    let number = line.find(BOUND).and_then(|start| {
        let start = start + BOUND.len();
        let end = start + line[start..].find('"')?;
        Some((start, end, line[start..end].parse::<f64>().ok().filter(|it| it.is_finite())?))
    });
    match number {
        Some((start, end, bound)) => {
            out.extend([&line[..start], &bound.to_string(), &line[end..]].concat().bytes());
        }
        None => out.extend_from_slice(line.as_bytes()),
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_is_written_in_both_formats() {
        let registry = "# HELP fabric_exporter_mads Wrong..\n# TYPE fabric_exporter_mads counter\n\
                        fabric_exporter_mads_total{fabric=\"f\"} 7\n\
                        # HELP fabric_exporter_web_requests None.\n# TYPE fabric_exporter_web_requests counter\n\
                        # HELP fabric_exporter_sweep_seconds Some.\n# TYPE fabric_exporter_sweep_seconds histogram\n\
                        fabric_exporter_sweep_seconds_bucket{le=\"1e-5\",fabric=\"f\"} 1\n\
                        fabric_exporter_sweep_seconds_bucket{le=\"1.0\",fabric=\"f\"} 1\n\
                        fabric_exporter_sweep_seconds_bucket{le=\"+Inf\",fabric=\"f\"} 1\n";
        let text = |format| {
            let mut out = Vec::new();
            append(registry, &mut out, format);
            String::from_utf8(out).unwrap()
        };
        let (plain, open) = (text(Format::Text), text(Format::OpenMetrics));
        assert!(plain.starts_with("# HELP fabric_exporter_mads_total MADs sent"), "{plain}");
        assert!(plain.contains("\n# TYPE fabric_exporter_mads_total counter\n"));
        assert!(open.contains("\n# TYPE fabric_exporter_mads counter\n"));
        assert!(open.contains("\n# UNIT fabric_exporter_sweep_seconds seconds\n"));
        assert!(!plain.contains("web_requests"), "a family without samples");
        for bound in ["0.00001", "1", "+Inf"] {
            let sample = format!("_bucket{{le=\"{bound}\",fabric=\"f\"}} 1\n");
            assert!(plain.contains(&sample) && open.contains(&sample), "{bound}");
        }
    }
}
