//! The subnet manager: by the states of the ports in sysfs, and by its responses to the local port of each fabric.
//!
//! Four SMPs for each fabric: PortInfo of the local port, NodeInfo of its neighbor, SMInfo and NodeDescription
//! of the master that the port names. If the master responds, [`fabric`] discovers the fabric.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::config::FabricSettings;
use crate::monitor::{keys_in, names_in};
use fabric_observation::SiteFileKind;
use ib_fabric::collect::local_port::{LocalPortQuery, LocalPortReport, MasterSm, NeighborReport};
use ib_fabric::names::Naming;
use ib_mad::port_state::{PhysicalState, PortState, PortStatus};
use ib_mad::rate::Width;
use ib_mad::smp::SmState;
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::umad::DeviceError;
use ib_umad::{MadTransport as _, RequestError, plan};
use process_clock::Clock;
use rdma_host::model::{Device, Port};

use super::Subject::{Ports, SubnetManager};
use super::checked_host::{CheckedHost, NO_DEVICE, is_infiniband, port_name};
use super::fabric;
use super::finding::{Finding, Level, bad, finding, note, ok, shortened, warn};
use super::planes::check_planes;

/// Timeout and retries: each SMP is sent twice at most, and the last two at once. With the 100 ms that the
/// engine adds to each, a manager that does not respond takes 1.2 s.
const PACE: (Duration, u8) = (Duration::from_millis(500), 1);

/// The daemons that manage subnets: the names of process, unit and package.
const OPENSM: &str = "opensm";
const OPAFM: &str = "opafm";

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    if !host.has_infiniband() {
        return vec![host.without_ports(SubnetManager)];
    }
    // What a port without a cable of its own lacks is told with the port.
    let ports = host.fabric_ports();
    ports.filter_map(|(device, port)| check_port(host, device, port)).collect()
}

fn check_port(host: &CheckedHost, device: &Device, port: &Port) -> Option<Finding> {
    let what = port_name(device, port);
    match port.state? {
        PortState::Active | PortState::ActiveDefer => {
            let lid = |lid: Option<_>| lid.map_or("unknown".into(), |lid| format!("{lid}"));
            let found = format!("LID {}, SM LID {}", lid(port.lid), lid(port.sm_lid));
            Some(ok(SubnetManager, what, found))
        }
        PortState::Init
            if port.physical_state.is_none_or(|state| state == PhysicalState::LinkUp) =>
        {
            let (daemon, kind) = match &*device.info.driver {
                "hfi1" => (OPAFM, "Omni-Path"),
                _ => (OPENSM, "InfiniBand"),
            };
            let found = "link is up, but no LID: no subnet manager has configured the port";
            let expected =
                format!("an {kind} subnet manager in this subnet; no program can use the port now");
            // The exporter reads the device nevertheless.
            let level = if host.sweeps() { Level::Bad } else { Level::Warn };
            let finding = finding(level, SubnetManager, what, found);
            Some(finding.expected(expected).fix(sm_fix(host, daemon)))
        }
        _ => None,
    }
}

/// What to do if no subnet manager responds.
fn sm_fix(host: &CheckedHost, name: &str) -> String {
    if let Some(process) = process_of(&host.settings().procfs, name) {
        let log = format!("journalctl -u {name}; tail /var/log/{name}.log");
        return format!(
            "{log}   # {name} runs here (process {process}), maybe for another port: check guid in \
             its configuration"
        );
    }
    let unit = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"]
        .iter()
        .any(|folder| Path::new(folder).join(format!("{name}.service")).exists());
    if unit {
        format!("systemctl start {name}   # here, or on the host or switch of your subnet manager")
    } else {
        format!(
            "start the subnet manager on its switch or host; to run it here: install {name}, then \
             systemctl start {name}"
        )
    }
}

fn process_of(procfs: &Path, name: &str) -> Option<i32> {
    // The processes of opafm have other names.
    let is_it =
        |command: &str| command == name || name == OPAFM && matches!(command, "fmmain" | "sm");
    procfs::process::all_processes_with_root(procfs)
        .ok()?
        .filter_map(Result::ok)
        .find(|process| process.stat().is_ok_and(|stat| is_it(&stat.comm)))
        .map(|process| process.pid)
}

fn title(fabric: &FabricSettings) -> String {
    format!("fabric {:?}", fabric.name)
}

/// Queries the subnet manager of each fabric that the exporter would monitor, unless the check is offline.
pub fn query(host: &CheckedHost) -> Vec<Finding> {
    let fabrics = || host.settings().fabrics.iter().filter(|fabric| fabric.from.is_none());
    if host.options.offline {
        let offline = "not checked: --offline sends no MADs";
        let found = if host.devices.is_empty() { NO_DEVICE } else { offline };
        let finding = |of: &FabricSettings| {
            without_infiniband(host, of).unwrap_or_else(|| note(SubnetManager, title(of), found))
        };
        return fabrics().map(finding).collect();
    }
    // In parallel: a host may have eight rails, and no manager on any.
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            fabrics().map(|fabric| scope.spawn(move || query_fabric(host, fabric))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

fn query_fabric(host: &CheckedHost, fabric: &FabricSettings) -> Vec<Finding> {
    let what = title(fabric);
    let (port, mut transport) = match fabric.open_port(&host.settings().sysfs, Clock::start()) {
        Ok(opened) => opened,
        Err(error) => return vec![port_unusable(host, fabric, &error)],
    };
    let what = format!("{what}, from {} port {}", port.hca, port.port);
    let planes = transport.smi_side().map(|side| check_planes(&what, &side));
    // A file that cannot be read has its own finding.
    let keys_of = |kind, file: Option<&PathBuf>| {
        file.and_then(|path| keys_in(kind, path).ok()).unwrap_or_default().keys
    };
    let keys = keys_of(SiteFileKind::MKey, fabric.m_key_file.as_ref());
    let has_keys = !keys.is_empty();
    let mut home = LocalPortQuery::with_keys(keys.clone(), transport.local_port().guid)
        .by_route(planes.is_some());
    let (timeout, retries) = PACE;
    let SendConfig { sl, max_mads_per_second, .. } = fabric.pace;
    let pace = SendConfig { timeout, retries, sl, max_mads_per_second, ..SendConfig::default() };
    let mut client = MadClient::new(pace);
    if let Err(error) = plan::run(&mut home, &mut client, &mut transport, &AtomicBool::new(false)) {
        let found = format!("device lost during the check: {error}");
        return vec![bad(SubnetManager, what, found).fix("dmesg | tail")];
    }
    let home = home.finish();
    let neighbor = home.neighbor.and_then(|it| check_neighbor(&what, it, has_keys));
    let mut findings = check_home(host, what.clone(), home, has_keys);
    findings.extend(neighbor);
    let is_multi_plane = planes.is_some();
    findings.extend(planes);
    let is_ok = |it: &Finding| (it.subject, it.level) == (SubnetManager, Level::Ok);
    // From a multi-plane HCA only the discovery asks the manager.
    let has_port = |it: &Finding| it.subject == SubnetManager && it.level < Level::Bad;
    if findings.iter().any(if is_multi_plane { has_port } else { is_ok }) {
        // A map that cannot be read has its own finding.
        let names = fabric.node_name_map.as_ref().and_then(|path| names_in(path).ok());
        let (hosts, rails) = (fabric.hosts.clone(), fabric.rails.clone());
        let naming = Naming { map: names.unwrap_or_default(), hosts, rails };
        let vs_keys =
            fabric.registers.map(|_| keys_of(SiteFileKind::VsKey, fabric.vs_key_file.as_ref()));
        let site = (&naming, &keys);
        findings.extend(fabric::check(
            &what,
            site,
            vs_keys,
            (fabric, pace),
            &mut client,
            &mut transport,
        ));
    }
    findings
}

/// What to do if nodes do not respond because of an M_Key.
fn m_key_fix(has_keys: bool) -> &'static str {
    if has_keys {
        "compare the key in --fabric.m-key-file with m_key in opensm.conf: the key is wrong"
    } else {
        "set --fabric.m-key-file to a file with the subnet manager's M_Key, or \
         m_key_protection_level 1 in opensm.conf"
    }
}

/// Why the local port and its neighbor have to respond.
const RESPONSE: &str = "a response; without it the discovery finds no nodes";

/// Whether an M_Key makes the neighbor drop SMPs.
fn check_neighbor(what: &str, neighbor: NeighborReport, has_keys: bool) -> Option<Finding> {
    let (level, what) = (neighbor.m_key_protect, format!("{what}: M_Key"));
    match neighbor.response {
        Err(failure) if failure.is_no_response() => {
            let protected = match level {
                0 | 1 => String::new(),
                _ => format!("; the local port has M_Key protection level {level}"),
            };
            let found = format!(
                "the neighbor of the local port does not respond to NodeInfo although the link is \
                 active{protected}: probably protected by an M_Key"
            );
            Some(bad(SubnetManager, what, found).expected(RESPONSE).fix(m_key_fix(has_keys)))
        }
        _ if level >= 2 => {
            let found = format!("M_Key protection level {level}, and the neighbor responds");
            Some(ok(SubnetManager, what, found))
        }
        _ => None,
    }
}

const OWN_DEVICES_ONLY: &str = "set --no-collector.fabric to report only this host's own devices";

/// No port can be opened to send from; `serve` would end with this error.
fn port_unusable(host: &CheckedHost, fabric: &FabricSettings, error: &DeviceError) -> Finding {
    if host.devices.is_empty() {
        return note(SubnetManager, title(fabric), NO_DEVICE);
    }
    // A missing link or device file has its own finding.
    without_infiniband(host, fabric).unwrap_or_else(|| {
        let fix = match error {
            DeviceError::NoSubnetManagement { why, .. } => why.remedy(),
            _ => "fix the other findings about the port".into(),
        };
        bad(SubnetManager, title(fabric), format!("port cannot be used: {error}"))
            .expected("a usable port; otherwise `serve` exits with code 3")
            .fix(format!("{fix}, or {OWN_DEVICES_ONLY}"))
    })
}

/// The finding if none of the ports that the fabric may be swept from is an InfiniBand port. That needs no umad device,
/// which hosts with RoCE alone often do not have.
fn without_infiniband(host: &CheckedHost, fabric: &FabricSettings) -> Option<Finding> {
    let is_named = |device: &&Device| fabric.hca.as_ref().is_none_or(|hca| **hca == *device.name);
    let devices = || host.devices.iter().filter(is_named);
    // One that is excluded, or hangs, may have an InfiniBand port.
    if devices().any(|device| !device.is_readable) || fabric.hca.is_none() && host.excluded > 0 {
        return None;
    }
    let ports: Vec<_> = devices()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)))
        .filter(|(_, port)| fabric.port.is_none_or(|number| number == port.number))
        .collect();
    if ports.is_empty() || ports.iter().any(|(_, port)| is_infiniband(port)) {
        return None;
    }
    let described = |(device, port): &(&Device, &Port)| {
        let layer = if port.link_layer.is_empty() { "unknown" } else { &port.link_layer };
        format!("{}: {layer}", port_name(device, port))
    };
    let listed = shortened(ports.iter().map(described).collect(), MAX_LISTED);
    let (which, other) = match &fabric.hca {
        Some(hca) => {
            (format!("among those of --fabric.hca={hca}"), "set another --fabric.hca, or ")
        }
        None => ("on this host".to_owned(), ""),
    };
    let found = format!("no InfiniBand port {which} ({listed}): `serve` exits with code 3");
    let finding = bad(SubnetManager, title(fabric), found)
        .expected("an InfiniBand port, or the fabric collector disabled")
        .fix(format!("{other}{OWN_DEVICES_ONLY}; sweep the fabric from a host with InfiniBand"));
    Some(finding)
}

/// How many ports are listed; the others are counted.
const MAX_LISTED: usize = 4;

fn check_home(
    host: &CheckedHost,
    what: String,
    home: LocalPortReport,
    has_keys: bool,
) -> Vec<Finding> {
    let port = match home.port {
        Ok(port) => port,
        // With an M_Key the port drops SMPs of its own host, too; to a removed device none can be sent.
        Err(RequestError::TimedOut) => {
            let found = "the local port does not respond to PortInfo: probably protected by an \
                         M_Key (level 2 or 3), or the adapter's firmware hangs";
            let fix = format!("{}; firmware: dmesg | tail", m_key_fix(has_keys));
            let what = format!("{what}: M_Key");
            return vec![bad(SubnetManager, what, found).expected(RESPONSE).fix(fix)];
        }
        Err(failure) => {
            let found = format!("PortInfo of the local port failed: {failure}");
            let fix = "set --fabric.hca and --fabric.port to another port; dmesg | tail";
            return vec![bad(SubnetManager, what, found).expected(RESPONSE).fix(fix)];
        }
    };
    let mut findings = vec![check_manager(host, what.clone(), home.master)];
    findings.extend(check_speed(what, &port));
    findings
}

fn check_manager(host: &CheckedHost, what: String, manager: Option<MasterSm>) -> Finding {
    let Some(MasterSm { lid, info, node }) = manager else {
        return bad(SubnetManager, what, "the local port has no master SM LID")
            .expected("a master SM in this subnet")
            .fix(sm_fix(host, OPENSM));
    };
    let at = if node.is_empty() { format!("LID {lid}") } else { format!("LID {lid} ({node})") };
    match info {
        Some(Ok((Some(SmState::Master), priority))) => {
            let found = format!("master SM at {at} responds, priority {priority}");
            ok(SubnetManager, what, found)
        }
        Some(Ok((state, _))) => {
            let state = state.map_or("reserved", SmState::label);
            let found =
                format!("SM at {at} has state {state}, but the local port reports it as master");
            let expected = "state master; another state is normal only during a handover";
            warn(SubnetManager, what, found)
                .expected(expected)
                .fix("run doctor again in a minute; if it persists: sminfo, and the SM's log")
        }
        None => {
            let found = format!("master SM at {at} is not asked by LID: the HCA is multi-plane");
            note(SubnetManager, what, found)
        }
        Some(Err(failure)) => {
            let found = format!("master SM at {at} does not respond: {failure}");
            let expected = "a response; without a master SM, links that come up stay in Init";
            bad(SubnetManager, what, found).expected(expected).fix(sm_fix(host, OPENSM))
        }
    }
}

/// The width and speed of the port, against those it supports.
fn check_speed(what: String, port: &PortStatus) -> Option<Finding> {
    let now = (port.width?, port.speed?);
    let best = (Width::widest(port.widths_supported)?, port.speeds_supported.fastest()?);
    let label = |(width, speed): (Width, ib_mad::rate::Speed)| {
        format!("{} {}", width.label(), speed.label())
    };
    if now == best {
        return Some(ok(Ports, what, format!("{}, the port's maximum", label(now))));
    }
    let found = format!("{}; the port supports {}", label(now), label(best));
    let expected = "the maximum that both ends support; the other end may be the limit";
    let fix = "fabric-exporter links   # compares both ends of each link";
    Some(note(Ports, what, found).expected(expected).fix(fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::Lid;

    #[test]
    fn silent_neighbor_suggests_m_key() {
        for (m_key_protect, response, has_keys, expected) in [
            (0, Ok(()), false, None),
            (2, Ok(()), true, Some((Level::Ok, "level 2, and the neighbor responds", ""))),
            (
                0,
                Err(RequestError::TimedOut),
                false,
                Some((Level::Bad, "protected by an M_Key", "set --fabric.m-key-file")),
            ),
            (
                3,
                Err(RequestError::TimedOut),
                false,
                Some((Level::Bad, "level 3: probably", "set --fabric.m-key-file")),
            ),
            (
                2,
                Err(RequestError::TimedOut),
                true,
                Some((Level::Bad, "level 2: probably", "key is wrong")),
            ),
            (0, Err(RequestError::Status(0x0c)), false, None),
        ] {
            let finding =
                check_neighbor("fabric", NeighborReport { m_key_protect, response }, has_keys);
            assert_eq!(finding.is_some(), expected.is_some(), "{finding:?}");
            if let (Some(finding), Some((level, says, fix))) = (finding, expected) {
                assert_eq!((finding.level, &*finding.what), (level, "fabric: M_Key"));
                assert!(finding.found.contains(says), "{finding:?}");
                assert!(finding.fix.unwrap_or_default().contains(fix));
            }
        }
    }

    fn host(procfs: &Path) -> CheckedHost {
        let mut host = CheckedHost::with(Vec::new());
        host.options.settings.procfs = procfs.to_owned();
        host
    }

    #[test]
    fn silent_local_port_suggests_m_key() {
        let procfs = tempfile::tempdir().unwrap();
        let host = host(procfs.path());
        for (failure, has_keys, says, fix) in [
            (RequestError::TimedOut, false, "protected by an M_Key", "set --fabric.m-key-file"),
            (
                RequestError::TimedOut,
                true,
                "protected by an M_Key",
                "compare the key in --fabric.m-key-file",
            ),
            (RequestError::Unsent, false, "PortInfo of the local port failed", "another port"),
            (RequestError::Status(0x0c), false, "status 0x000c", "another port"),
        ] {
            let home = LocalPortReport { port: Err(failure), neighbor: None, master: None };
            let findings = check_home(&host, "fabric".into(), home, has_keys);
            let [finding] = &*findings else { panic!("{findings:?}") };
            assert_eq!(finding.level, Level::Bad);
            assert!(finding.found.contains(says), "{finding:?}");
            assert!(finding.fix.as_ref().unwrap().contains(fix), "{finding:?}");
        }
    }

    #[test]
    fn level_depends_on_response_of_manager() {
        let procfs = tempfile::tempdir().unwrap();
        let host = host(procfs.path());
        for (info, level, says) in [
            (Some(Ok((Some(SmState::Master), 14))), Level::Ok, "responds, priority 14"),
            (Some(Ok((Some(SmState::Standby), 0))), Level::Warn, "has state standby"),
            (Some(Ok((None, 0))), Level::Warn, "has state reserved"),
            (None, Level::Note, "not asked by LID"),
            // A driver that refuses to send, on an ordinary HCA.
            (Some(Err(RequestError::Unsent)), Level::Bad, "does not respond: "),
            (Some(Err(RequestError::TimedOut)), Level::Bad, "does not respond: "),
        ] {
            let manager = MasterSm { lid: Lid(7), info, node: "head-1".into() };
            let finding = check_manager(&host, "fabric".into(), Some(manager));
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(finding.found.contains("LID 7 (head-1)"), "{finding:?}");
            assert!(finding.found.contains(says), "{finding:?}");
            assert_eq!(finding.fix.is_some(), level > Level::Note, "{finding:?}");
        }
        assert_eq!(check_manager(&host, "fabric".into(), None).level, Level::Bad);
    }
}
