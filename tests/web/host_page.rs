//! This host's own devices on pages and in the API.

use std::time::Duration;

use serde_json::Value;

use test_rig::Exporter;
use test_rig::sysfs::{Device, Netdev, Tree};
use test_rig::wait_until;

const LIMIT: Duration = Duration::from_secs(30);

fn started(tree: &Tree) -> Exporter {
    let exporter = Exporter::on_host(tree, &["--host.interval=1s"]);
    exporter.wait_reads(1);
    exporter
}

fn page(exporter: &Exporter, path: &str) -> String {
    exporter.get(path, &[]).text().to_owned()
}

fn json(exporter: &Exporter, path: &str) -> Value {
    serde_json::from_str(exporter.get(path, &[]).text()).unwrap()
}

/// The text of a page's section of a device, without markup and in one line.
fn section(page: &str, device: &str) -> String {
    let (_, rest) =
        page.split_once(&format!("id=\"{device}\"")).unwrap_or_else(|| panic!("{page}"));
    let section = rest.split("</section>").next().unwrap();
    let text = section.split('<').map(|tag| tag.split_once('>').map_or(tag, |(_, text)| text));
    text.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn missing_device_is_shown_and_found() {
    let lost = Device::mlx5_ndr("mlx5_1", 1);
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0), lost.clone()]);
    let mut exporter = started(&tree);
    assert!(!page(&exporter, "/").contains("missing"));
    tree.remove(&lost);
    wait_until(LIMIT, "the device to be missing", || {
        let up = exporter.metrics().get("infiniband_device_up", &[("device", "mlx5_1")]);
        (up == Some(0.0)).then_some(())
    });

    let text = section(&page(&exporter, "/host"), "mlx5_1");
    for says in ["missing", "0xa088c20300400001", "Jobs", "lspci", "dmesg", "since"] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let overview = page(&exporter, "/");
    let entry = overview.split("<li>").find(|it| it.contains("href=\"/host#mlx5_1\"")).unwrap();
    assert!(entry.contains("bad") && entry.contains("missing"), "{entry}");

    let host = &json(&exporter, "/api/v1/overview")["host"];
    let [missing] = &host["missing"].as_array().unwrap()[..] else { panic!("{host:#}") };
    assert_eq!(
        (&missing["device"], &missing["guid"]),
        (&"mlx5_1".into(), &"0xa088c20300400001".into())
    );
    assert!(humantime::parse_rfc3339(missing["since"].as_str().unwrap()).is_ok());

    for (text, matched) in [
        ("mlx5_1", "name"),
        ("0xa088c20300400001", "guid"),
        ("a088c20300400001", "guid"),
        ("0xa088c20300400000", "guid"),
    ] {
        let hits = &json(&exporter, &format!("/api/v1/search?q={text}"))["hits"];
        let [hit] = &hits.as_array().unwrap()[..] else { panic!("{text}: {hits:#}") };
        let name = if text.ends_with("400000") { "mlx5_0" } else { "mlx5_1" };
        assert_eq!((&hit["kind"], &hit["name"]), (&"device".into(), &name.into()));
        assert_eq!(
            (&hit["matched"], &hit["page"]),
            (&matched.into(), &format!("/host#{name}").into())
        );
    }

    tree.add(&lost);
    wait_until(LIMIT, "the device to be back", || {
        (!page(&exporter, "/host").contains("missing")).then_some(())
    });
    assert!(exporter.stop().success());
}

#[test]
fn guids_are_those_of_metrics() {
    let shared = 0x5054_00ff_fe00_0001;
    let tree = Tree::new([
        Device::mlx5_vf("mlx5_4", 1),
        Device::mlx5_vf("mlx5_5", 2),
        Device::rxe("rxe0", "eth0").guid(shared),
        Device::rxe("rxe1", "eth0.5").guid(shared),
        Device::mlx5_ndr("mlx5_9", 0).without("node_guid"),
    ]);
    let mut exporter = started(&tree);
    let overview = json(&exporter, "/api/v1/overview");
    let guid = |device: &str| {
        let devices = overview["host"]["devices"].as_array().unwrap();
        devices.iter().find(|it| it["device"] == device).unwrap()["guid"].as_str().unwrap()
    };
    let none = "0x0000000000000000";
    assert_eq!(["mlx5_4", "mlx5_5", "mlx5_9"].map(guid), [none, none, ""]);
    assert_eq!(["rxe0", "rxe1"].map(guid), ["0x505400fffe000001"; 2]);
    for path in ["/host", "/", "/api/v1/overview", "/api/v1/search?q=mlx5", "/search?q=mlx5"] {
        assert!(!page(&exporter, path).contains("0xffff"), "{path}");
    }
    // 0 is the GUID of none.
    assert_eq!(json(&exporter, "/api/v1/search?q=0x0000000000000000")["found"], 0);
    assert!(exporter.stop().success());
}

#[test]
fn ports_show_why_they_are_down_and_no_stale_values() {
    let down = |name: &str, index: u16, physical: &str| {
        Device::mlx5_ndr(name, index)
            .file("ports/1/state", "1: DOWN")
            .file("ports/1/phys_state", physical)
            .file("ports/1/rate", "10 Gb/sec (4X SDR)")
            .lid(1, 868, 334)
    };
    let bond = Device::mlx5_bond("mlx5_bond_0", 8).named_anew("ens1f1np1", "other0");
    let off = Device::irdma("irdma0")
        .file("ports/1/state", "1: DOWN")
        .file("ports/1/phys_state", "3: Disabled");
    let tree = Tree::new([
        down("mlx5_0", 0, "2: Polling"),
        down("mlx5_1", 1, "3: Disabled"),
        // It has a link, and its old LID.
        down("mlx5_2", 2, "5: LinkUp").file("ports/1/state", "2: INIT"),
        Device::mlx5_ndr("mlx5_3", 3).file("ports/1/counters/symbol_error", "65535"),
        Device::mlx5_vf("mlx5_4", 1),
        bond,
        off,
    ]);
    tree.link("devices/pci0000:00/0000:c1:00.1/physfn", "../0000:c1:00.0");
    let slave = Netdev::ethernet("ens1f1np1").file("flags", "0x1803").file("carrier", "0");
    tree.add_netdev(None, &slave.file("operstate", "down"));
    let slaves = Netdev::ethernet("bond0").file("bonding/slaves", "ens1f0np0 ens1f1np1");
    tree.add_netdev(None, &slaves);
    tree.put("class/net/ens3f0/flags", "0x1002\n");
    let mut exporter = started(&tree);
    let host = page(&exporter, "/host");
    for (device, says) in [
        ("mlx5_0", "Down , Polling"),
        ("mlx5_1", "Down , Disabled"),
        ("mlx5_2", "Init , LinkUp"),
        ("mlx5_3", "symbol errors"),
        ("mlx5_4", "virtual function"),
        ("mlx5_bond_0", "ens1f0np0 (in bond0)"),
        ("mlx5_bond_0", "ens1f1np1 (in bond0) no carrier"),
        ("irdma0", "ens3f0 administratively down"),
    ] {
        let text = section(&host, device);
        assert!(text.contains(says), "{says}: {text}");
    }
    for device in ["mlx5_0", "mlx5_1"] {
        let text = section(&host, device);
        assert!(!text.contains("868") && !text.contains("10 Gb/s"), "{text}");
    }
    let init = section(&host, "mlx5_2");
    assert!(!init.contains("868") && init.contains("10 Gb/s"), "{init}");
    assert!(!section(&host, "mlx5_3").contains("physical"), "it needs no word");
    let overview = page(&exporter, "/");
    let entry = overview.split("<li>").find(|it| it.contains("href=\"/host#mlx5_0\"")).unwrap();
    assert!(!entry.contains("10 Gb/s"), "{entry}");

    let all = json(&exporter, "/api/v1/overview");
    let device = |name: &str| {
        let devices = all["host"]["devices"].as_array().unwrap();
        devices.iter().find(|it| it["device"] == name).unwrap()
    };
    assert_eq!(device("mlx5_4")["kind"], "virtual_function");
    assert_eq!(device("mlx5_1")["ports"][0]["physical_state"], "Disabled");
    assert_eq!(device("mlx5_3")["ports"][0]["saturated_now"][0], "symbol_errors");
    let netdev = &device("irdma0")["ports"][0]["netdevs"][0];
    assert_eq!(
        (&netdev["netdev"], &netdev["administratively_up"]),
        (&"ens3f0".into(), &false.into())
    );
    assert!(exporter.stop().success());
}
