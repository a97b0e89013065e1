//! P_Keys: may this port speak with the others' agents?
//!
//! Performance management travels in a partition, and two limited members of one do not hear each
//! other (IBTA 1.4, 10.9.1.1). The exporter asks with the first key of the table, which is the default
//! partition's unless somebody changed it.

use crate::fabric::host::{Device, Port};

use super::finding::{Finding, Subject};
use super::host::{Host, port_name};

const SUBJECT: Subject = Subject::Partitions;

/// The default partition: bit 15 says full member (IBTA 1.4, 10.9.1.2).
const DEFAULT_FULL: u16 = 0xffff;
const DEFAULT_LIMITED: u16 = 0x7fff;

/// So many keys are told.
const TOLD: usize = 6;

/// Looks at the tables.
pub fn check(host: &Host) -> Vec<Finding> {
    let ports = host.infiniband_ports();
    let findings: Vec<Finding> = ports.map(|(device, port)| of_port(host, device, port)).collect();
    if findings.is_empty() {
        return vec![Finding::ok(SUBJECT, "ports", "no InfiniBand port here: none needed")];
    }
    findings
}

fn of_port(host: &Host, device: &Device, port: &Port) -> Finding {
    let path = format!("class/infiniband/{}/ports/{}/pkeys", device.name, port.number);
    let what = port_name(device, port);
    let Some(table) = host.directory(&path) else {
        return Finding::note(SUBJECT, what, "its P_Key table cannot be read");
    };
    // By number, which is not the order of names.
    let mut indexes: Vec<u16> =
        table.names().unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
    indexes.sort_unstable();
    let keys: Vec<(u16, u16)> = indexes
        .into_iter()
        .filter_map(|index| {
            let text = table.text(&index.to_string());
            Some((index, u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()?))
        })
        .filter(|(_, key)| *key != 0)
        .collect();
    let has = |wanted| keys.iter().any(|(_, key)| *key == wanted);
    let first = keys.iter().find(|(index, _)| *index == 0).map(|(_, key)| *key);
    let mut told: Vec<String> =
        keys.iter().take(TOLD).map(|(_, key)| format!("{key:#06x}")).collect();
    if keys.len() > TOLD {
        told.push(format!("{} more", keys.len() - TOLD));
    }
    let told = if told.is_empty() { "none".into() } else { told.join(", ") };
    let mend = "on the subnet manager's host, in partitions.conf: Default=0x7fff, ipoib: ALL=limited, \
                SELF=full, <this port's GUID>=full;";
    match first {
        Some(DEFAULT_FULL) => {
            Finding::ok(SUBJECT, what, format!("{told}: full member of the default"))
        }
        _ if has(DEFAULT_FULL) => {
            let found = format!("{told}: the default partition is not the first of them");
            Finding::warn(SUBJECT, what, found)
                .wanted("0xffff first: agents are asked in the partition that is first")
                .mend(
                    "look at the subnet manager's partitions, and restart it: it puts 0xffff first",
                )
        }
        _ if has(DEFAULT_LIMITED) => {
            let found = format!("{told}: limited member of the default partition");
            Finding::warn(SUBJECT, what, found)
                .wanted("0xffff: of two limited members neither hears the other, so hosts' counters cannot be asked")
                .mend(mend)
        }
        // Before a subnet manager came, a table may be empty.
        None if port.lid.is_none() => Finding::note(SUBJECT, what, format!("{told}, as yet")),
        _ => {
            let found = format!("{told}: not in the default partition");
            Finding::warn(SUBJECT, what, found)
                .wanted("0xffff, for subnet administration and performance management")
                .mend(mend)
        }
    }
}
