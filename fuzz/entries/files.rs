//! Files of users: topologies, scenarios, settings, node names, and maintenance.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fabric_exporter::config::Settings;
use fabric_exporter::config::options::{Options, WebOptions};
use fabric_exporter::monitor::Monitor;
use fabric_observation::SharedState;
use ib_fabric::node_name_map::NodeNameMap;
use ib_mad::Moment;
use ib_mad::node::readable_description;
use ib_sim::net::{Net, file, testing};
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use tempfile::TempDir;
use tokio::sync::watch;

use super::fabric::story;

thread_local! {
    static FOLDER: TempDir = tempfile::tempdir().unwrap();
}

/// Writes a file; its path.
fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join(name));
    std::fs::write(&path, bytes).unwrap();
    path
}

/// An error is a single line.
pub(super) fn one_line(error: &impl std::fmt::Display) {
    let error = error.to_string();
    assert!(!error.is_empty() && !error.contains(['\n', '\r']), "{error:?}");
}

/// The node-name-map, and node descriptions.
pub fn names(bytes: &[u8]) {
    let description = readable_description(bytes);
    assert!(!description.contains(char::is_control), "{description:?}");
    let Ok(text) = str::from_utf8(bytes) else { return };
    match NodeNameMap::parse(text) {
        Ok(names) => assert!(names.0.len() <= text.lines().count()),
        Err(errors) => {
            for error in &errors {
                assert!(error.line >= 1 && error.line <= text.lines().count());
                one_line(error);
            }
        }
    }
}

/// A topology as ibnetdiscover writes it; written again it is the same.
pub fn topology(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let net = match file::parse(text) {
        Ok(net) => net,
        Err(error) => return one_line(&error),
    };
    is_sound(&net);
    let again = file::parse(&testing::write(&net)).unwrap_or_else(|error| panic!("{error}"));
    let labels = |net: &Net| {
        let cables = net.port_ids().filter_map(|port| Some((port, net.port(port).cable?)));
        let mut cables: Vec<_> =
            cables.map(|(near, far)| (net.label(near), net.label(far))).collect();
        cables.sort();
        cables
    };
    assert_eq!(labels(&net), labels(&again));
}

fn is_sound(net: &Net) {
    for port in net.port_ids() {
        if let Some(far) = net.port(port).cable {
            assert_eq!(net.port(far).cable, Some(port), "a cable has two ends");
        }
    }
}

/// A scenario. It is resolved on a small fabric, whatever fabric it names, and its beginning is simulated.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let overrides = Overrides::default();
    let scenario = match Scenario::parse("fuzzed", text) {
        Ok(scenario) => scenario,
        Err(error) => return one_line(&error),
    };
    if let Err(error) = scenario.source(&overrides) {
        one_line(&error);
    }
    match scenario.resolve_on(story().net, &overrides) {
        Err(error) => one_line(&error),
        Ok(story) => {
            assert!(story.changes.is_sorted_by_key(|step| step.at));
            assert!(story.descriptions.iter().all(|(_, words)| !words.contains('\n')));
            let mut world = Simulation::new(story);
            for second in [1, 3] {
                world.advance(Moment::default() + Duration::from_secs(second));
            }
        }
    }
}

/// The config file and the maintenance file.
pub fn settings(bytes: &[u8]) {
    // A host name to listen on would be resolved; flags override the file.
    let web = WebOptions { listen_address: Some(vec![":0".into()]), ..WebOptions::default() };
    let flags = Options { web, ..Options::default() };
    let path = written("settings.yml", bytes);
    if let Err(error) = Settings::load(flags.clone(), Some(&path)) {
        error.lines().iter().for_each(one_line);
    }
    let mut settings = Settings::load(flags, None).unwrap().fabrics.remove(0);
    settings.maintenance_file = Some(path.clone());
    let (board, _seen) = watch::channel(SharedState::default());
    let stop = Arc::new(AtomicBool::new(true));
    if let Err(error) = Monitor::new(settings, None, Arc::new(board), 0, stop) {
        error.lines().iter().for_each(one_line);
    }
}
