//! The faults, each in a fabric of its own, all scraped by one Prometheus.

use std::time::Duration;

use test_rig::Exporter;

/// When trouble begins in a fabric, by its own clock.
pub const ONSET: Duration = Duration::from_secs(120);

/// A fabric and its scenario.
pub struct Scene {
    /// The name of the fabric.
    pub name: &'static str,
    /// The generations of its switches and HCAs.
    devices: [&'static str; 2],
    /// The rest of the scenario.
    story: &'static str,
    /// More flags of its exporter.
    flags: &'static [&'static str],
}

const FDR: [&str; 2] = ["switchx", "connectx-3"];
const HDR: [&str; 2] = ["quantum", "connectx-6"];
const SDR: [&str; 2] = ["infiniscale-4", "infinihost-3"];

/// All scenes. Links that a scene does not name stay healthy.
pub const SCENES: [Scene; 13] = [
    // A hundred times the allowed bit error ratio, until the cable is swapped.
    Scene {
        name: "bad-cable",
        devices: FDR,
        story: "timeline:\n\
                - bad-cable: {at: 2m, into: 'leaf-0-1[5]', ratio: 1e-10, for: 5m}\n\
                - unplug: {at: 6m 50s, link: 'leaf-0-1[5]', for: 30s}",
        flags: &[],
    },
    // A host that receives very slowly.
    Scene {
        name: "congestion",
        devices: HDR,
        story: "traffic: {load: 60%}\ntimeline: [{slow-receiver: {at: 2m, host: host-6, takes: 2%}}]",
        flags: &[],
    },
    // With the four hosts attached to it.
    Scene {
        name: "dead-switch",
        devices: FDR,
        story: "timeline: [{reboot: {at: 2m, node: leaf-0-2, down: 9m}}]",
        flags: &[],
    },
    Scene {
        name: "reboot",
        devices: FDR,
        story: "timeline: [{reboot: {at: 2m, node: host-13, down: 4m}}]",
        flags: &[],
    },
    // All events of links, more than five of which are bad; all of them are recorded.
    Scene {
        name: "links",
        devices: HDR,
        story: "timeline:\n\
                - flap: {at: 2m, link: 'leaf-0-1[5]', down: 3s, every: 45s, times: 4}\n\
                - degrade: {at: 2m, link: 'leaf-0-1[6]', width: 1x}\n\
                - degrade: {at: 2m, link: 'leaf-0-2[5]', speed: EDR}\n\
                - unplug: {at: 2m, link: 'leaf-0-3[2]'}\n\
                - unplug: {at: 2m, link: 'leaf-0-3[6]'}\n\
                - unplug: {at: 2m, link: 'leaf-0-0[5]'}\n\
                - unplug: {at: 2m, link: 'leaf-0-0[6]'}\n\
                - unplug: {at: 2m, link: 'leaf-0-0[7]'}\n\
                - bad-cable: {at: 2m, into: 'leaf-0-2[7]', ratio: 8e-14}\n\
                - bad-cable: {at: 2m, into: 'leaf-0-3[7]', ratio: 2e-9}\n\
                - new-master: {at: 2m, host: host-5}\n\
                - new-master: {at: 4m, host: host-6}\n\
                - new-master: {at: 6m, host: host-7}",
        flags: &["--history.file=history.db"],
    },
    // Old devices, whose counters are saturated.
    Scene {
        name: "full-counters",
        devices: SDR,
        story: "timeline: [{set: {at: 2m, port: 'host-3[1]', counters: {SymbolErrorCounter: 65535}}}]",
        flags: &[],
    },
    // The host of the only subnet manager goes down, and another host for good.
    Scene {
        name: "no-master",
        devices: FDR,
        story: "timeline: [{reboot: {at: 2m, node: host-1, down: 1h}}]",
        flags: &[],
    },
    // MADs are delayed and lost.
    Scene {
        name: "slow-fabric",
        devices: FDR,
        story: "way: {round-trip: 2s, loss: 4%}",
        flags: &["--fabric.timeout=6s"],
    },
    // The exporter's own cable is unplugged: it can reach no node.
    Scene {
        name: "alone",
        devices: FDR,
        story: "timeline: [{unplug: {at: 2m, link: 'host-0[1]'}}]",
        flags: &[],
    },
    // All ports get an M_Key that the exporter does not have.
    Scene {
        name: "m-key",
        devices: FDR,
        story: "timeline: [{m-key: {at: 2m, key: 0x1234, level: 2}}]",
        flags: &[],
    },
    // All hosts become limited members of the partition.
    Scene {
        name: "limited",
        devices: FDR,
        story: "timeline: [{limited-member: {at: 2m}}]",
        flags: &[],
    },
    // Its exporter is stopped.
    Scene { name: "stopped", devices: FDR, story: "", flags: &[] },
    // Its clock has normal speed, so that its data becomes older and older.
    Scene { name: "late", devices: FDR, story: "", flags: &["--clock=1"] },
];

impl Scene {
    /// An exporter that watches it at the default intervals, with its clock accelerated by `pace`.
    pub fn watch(&self, pace: u32) -> Exporter {
        let [switch, hca] = self.devices;
        let scenario = format!(
            "fabric: {{fat-tree: {{hosts: 16, radix: 8, down: 4, up: 4, switch: {switch}, hca: {hca}}}}}\n{}\n",
            self.story
        );
        let file = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
        std::fs::write(file.path(), scenario).unwrap();
        let mut flags = vec![
            format!("--scenario={}", file.path().display()),
            format!("--fabric.name={}", self.name),
            "--fabric.interval=15s".into(),
            "--fabric.details".into(),
        ];
        if !self.flags.iter().any(|flag| flag.starts_with("--clock")) {
            flags.push(format!("--clock={pace}"));
        }
        flags.extend(self.flags.iter().map(|&flag| flag.to_owned()));
        if !self.flags.iter().any(|flag| flag.starts_with("--history.file")) {
            flags.push("--no-history".into());
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        // It has read the file once it listens.
        Exporter::demo_uncaptured(&flags)
    }
}
