//! Each deployment gives the exporter all umad devices: a multi-plane HCA has one for its port and one for each plane.

use serde_json::json;

use crate::chart::of;
use crate::judges::{list, texts, yaml};
use test_rig::rules;

fn text(path: &str) -> String {
    rules::text(&rules::path(path))
}

#[test]
fn unit_opens_the_whole_class() {
    let unit = text("deploy/systemd/fabric-exporter.service");
    let allowed: Vec<&str> =
        unit.lines().filter_map(|line| line.strip_prefix("DeviceAllow=")).collect();
    // A group of character devices in /proc/devices (kernel: `ib_umad_init`), not the path of one device.
    assert!(allowed.contains(&"char-infiniband_mad rw"), "{allowed:?}");
    assert!(!unit.contains("PrivateDevices=yes"), "{unit}");
}

#[test]
fn udev_rule_matches_each_number() {
    let rules = text("deploy/udev/90-fabric-exporter.rules");
    let rule = rules.lines().find(|line| line.starts_with("SUBSYSTEM")).unwrap();
    assert!(rule.contains("SUBSYSTEM==\"infiniband_mad\", KERNEL==\"umad[0-9]*\""), "{rule}");
}

#[test]
fn containers_get_the_directory() {
    let compose = yaml(&rules::path("deploy/compose/compose.fabric.yml"));
    let devices = texts(&compose["services"]["fabric-exporter"], "/devices");
    assert_eq!(devices, ["/dev/infiniband:/dev/infiniband"]);
    assert!(text("docs/operate.md").contains("--device /dev/infiniband --group-add"));
    let deployment = of("privileged", "Deployment ib-fabric-exporter-ib");
    let volumes = list(&deployment, "/spec/template/spec/volumes");
    let host = json!({"path": "/dev/infiniband", "type": "Directory"});
    let volume = volumes.iter().find(|it| it["hostPath"] == host).unwrap();
    let [container] = list(&deployment, "/spec/template/spec/containers") else { panic!() };
    let mounts = list(container, "/volumeMounts");
    let mount = mounts.iter().find(|it| it["name"] == volume["name"]).unwrap();
    assert_eq!(mount["mountPath"], "/dev/infiniband");
}
