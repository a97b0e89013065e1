//! Prints the totals of dumps as JSON lines, to be compared with those of scripts/dump-totals.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use ib_mad::node::NodeKind;
use ib_mad::register::text;

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let dumps = match fabric_dumps::read(&[PathBuf::from(&path)]) {
            Ok(dumps) => dumps,
            Err(error) => {
                eprintln!("{error}");
                failed = true;
                continue;
            }
        };
        for dump in dumps.dumps {
            let kinds = |kind| dump.nodes.values().filter(|node| node.kind == Some(kind)).count();
            let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
            for (counter, value, _) in dump.ports.values().flat_map(|port| port.counters.values()) {
                *sums.entry(counter.row().ibta).or_default() += u128::from(value);
            }
            let sums: Vec<String> =
                sums.iter().map(|(name, sum)| format!("\"{name}\":{sum}")).collect();
            let modules = dump.ports.values().filter_map(|port| port.module.as_ref());
            let serials = modules.filter(|module| !text(&module.serial_number).is_empty()).count();
            println!(
                "{{\"file\":\"{path}\",\"format\":\"{}\",\"nodes\":{},\"switches\":{},\"cas\":{},\"links\":{},\
                 \"ports_with_counters\":{},\"cables_with_serial\":{serials},\"unused\":{},\"counter_sum\":{{{}}}}}",
                dump.files[0].1.label(),
                dump.nodes.len(),
                kinds(NodeKind::Switch),
                kinds(NodeKind::Ca),
                dump.links.len(),
                dump.counted(),
                dump.remarks.iter().filter(|it| it.is_unused).count(),
                sums.join(",")
            );
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
