//! P_Keys: may this port speak with the others' agents?
//!
//! Performance management travels in a partition, and two limited members of one do not hear each
//! other (IBTA 1.4, 10.9.1.1). The exporter asks with the key of `--fabric.pkey`, else with the first of
//! the table, which is the default partition's unless somebody changed it.

use crate::config::FabricSettings;
use ib_mad::p_key::PKey;
use ib_mad::port_state::physical;
use rdma_host::model::{Device, Port};

use super::finding::{Finding, Subject};
use super::host::{Host, port_name};

const SUBJECT: Subject = Subject::Partitions;

/// The default partition: bit 15 says full member (IBTA 1.4, 10.9.1.2).
const DEFAULT_FULL: u16 = 0xffff;
const DEFAULT_LIMITED: u16 = 0x7fff;

/// So many keys are told.
const TOLD: usize = 6;

/// Looks at the tables.
pub fn check(host: &Host, fabrics: &[FabricSettings]) -> Vec<Finding> {
    let chosen: Vec<(&str, u8, PKey)> =
        fabrics.iter().filter_map(|fabric| chosen_for(host, fabric)).collect();
    let ports = host.infiniband_ports().map(|(device, port)| {
        let is_it = |of: &&(&str, u8, PKey)| (of.0, of.1) == (&*device.name, port.number);
        of_port(host, device, port, chosen.iter().find(is_it).map(|(.., key)| *key))
    });
    let findings: Vec<Finding> = ports.collect();
    if findings.is_empty() {
        return vec![Finding::ok(SUBJECT, "ports", "no InfiniBand port here: none needed")];
    }
    findings
}

/// The port that a fabric is asked from, and the P_Key to ask with, if one is named.
fn chosen_for<'a>(host: &'a Host, fabric: &FabricSettings) -> Option<(&'a str, u8, PKey)> {
    let wanted = fabric.p_key?;
    let is_named = |(device, port): &(&Device, &Port)| {
        fabric.hca.as_ref().is_none_or(|hca| **hca == *device.name)
            && fabric.port.is_none_or(|number| number == port.number)
    };
    let named = || host.infiniband_ports().filter(is_named);
    let has_link = |(_, port): &(&Device, &Port)| port.physical_state == Some(physical::LINK_UP);
    let (device, port) = named().find(has_link).or_else(|| named().next())?;
    Some((&device.name, port.number, wanted))
}

/// Whether the port can ask with the key of `--fabric.pkey`.
fn of_chosen(what: String, told: &str, wanted: PKey, keys: &[(u16, u16)]) -> Finding {
    let table = keys.iter().filter_map(|(index, key)| Some((*index, PKey::new(*key)?)));
    match wanted.find_in(table) {
        Some((_, key)) if key.is_full() => {
            let found = format!("{told}: full member of the partition of --fabric.pkey {wanted}");
            Finding::ok(SUBJECT, what, found)
        }
        Some(_) => {
            let found =
                format!("{told}: limited member of the partition of --fabric.pkey {wanted}");
            Finding::warn(SUBJECT, what, found)
                .wanted("full membership: of two limited members neither hears the other, so hosts' counters cannot be asked")
                .mend("on the subnet manager's host, in partitions.conf: <this port's GUID>=full in that partition")
        }
        None => {
            let found = format!("{told}: not in the partition of --fabric.pkey {wanted}");
            Finding::bad(SUBJECT, what, found)
                .wanted("a P_Key of this table: serve ends without it")
                .mend("name one of them with --fabric.pkey, or add the port to the partition in partitions.conf")
        }
    }
}

fn of_port(host: &Host, device: &Device, port: &Port, chosen: Option<PKey>) -> Finding {
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
    if let Some(wanted) = chosen {
        return of_chosen(what, &told, wanted, &keys);
    }
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
