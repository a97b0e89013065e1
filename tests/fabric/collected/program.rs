//! The program itself on a stub of UFM Telemetry: no devices, sandboxed, and whatever the stub answers.

use std::fmt::Write;
use std::time::Duration;

use test_rig as rig;

use super::stub::Endpoint;

/// A leaf with hosts, at a second, with these receive errors of the first host.
fn csv(second: u64, hosts: u64, errors: &str) -> String {
    let at = (1_800_000_000 + second) * 1_000_000;
    let mut text = "timestamp,Node_GUID,Port_Number,node_description,logical_state,phy_state,Link_speed_active,\
                    Link_width_active,link_partner_node_guid,link_partner_port_num,SymbolErrorCounter,PortRcvErrors\n"
        .to_owned();
    for host in 1..=hosts {
        let guid = format!("0x{:x}", 0xb00 + host);
        let own = if host == 1 { errors } else { "0" };
        let (leaf, port) = (0xa + host / 40 * 0x10_0000, host % 40 + 1);
        writeln!(text, "{at},0x{leaf:x},{port},leaf-{leaf:x},4,5,512,2,{guid},1,0,0").unwrap();
        writeln!(text, "{at},{guid},1,host-{host} mlx5_0,4,5,512,2,0x{leaf:x},{port},0,{own}")
            .unwrap();
    }
    text
}

const HOST: [(&str, &str); 2] = [("guid", "0x0000000000000b01"), ("port", "1")];

fn wait_for(exporter: &rig::Exporter, what: &str, is: impl Fn(&rig::Metrics) -> bool) {
    rig::wait_until(Duration::from_secs(60), what, || is(&exporter.metrics()).then_some(()));
}

fn errors(exporter: &rig::Exporter) -> Option<f64> {
    exporter.metrics().get("infiniband_port_receive_errors_total", &HOST)
}

#[test]
fn program_without_a_device_recovers_from_whatever_the_endpoint_answers() {
    let endpoint = Endpoint::start();
    endpoint.publish(&csv(0, 30, "5"));
    let from = format!("--fabric.from={}", endpoint.url("/csv/xcset/low_freq_debug?shard=0"));
    let mut exporter = rig::Exporter::without_devices(&[&from, "--fabric.interval=1s"]);
    exporter.wait_ready();
    wait_for(&exporter, "the first data", |metrics| {
        metrics.get("infiniband_port_receive_errors_total", &HOST) == Some(5.0)
    });
    let successful = |exporter: &rig::Exporter, wanted: f64| {
        wait_for(exporter, "the result of a poll", |metrics| {
            metrics.get("fabric_exporter_source_last_poll_successful", &[]) == Some(wanted)
        });
    };
    let good = csv(1, 30, "6");
    let broken: [(&str, usize, &[u8]); 6] = [
        ("503 Service Unavailable", 4, b"busy"),
        ("200 OK", 43, b"<!DOCTYPE html><html>Bad Gateway</html>...."),
        ("200 OK", good.len(), &good.as_bytes()[..good.len() / 2]),
        ("200 OK", 0, b""),
        ("200 OK", 4, &[0xff, 0xfe, 0, 0xd8]),
        ("200 OK", 9, b"a,b\n1,2\n\n"),
    ];
    let mut second = 1;
    for (status, length, body) in broken {
        endpoint.answer_with(status, length, body);
        successful(&exporter, 0.0);
        assert_eq!(errors(&exporter), Some((4 + second) as f64), "the last data stays");
        let count = (5 + second).to_string();
        endpoint.publish(&csv(second, 30, &count));
        successful(&exporter, 1.0);
        wait_for(&exporter, "the new data", |metrics| {
            metrics.get("infiniband_port_receive_errors_total", &HOST) == count.parse().ok()
        });
        second += 1;
    }
    // Ten times as many ports, a byte order mark, other columns, rows twice, and cells that are no numbers.
    let large = csv(second, 300, "NaN").replace("PortRcvErrors", "PortRcvErrors,new_field");
    let large = large.replace(",NaN\n", ",NaN,7\n").replace(",0,0\n", ",0,N/A,7\n");
    let twice = large.lines().last().unwrap().to_owned();
    endpoint.publish(&format!("\u{feff}{large}{twice}\n"));
    wait_for(&exporter, "the larger fabric", |metrics| {
        metrics.get("fabric_exporter_nodes_seen", &[]).is_some_and(|nodes| nodes > 300.0)
    });
    assert_eq!(errors(&exporter), None, "unknown, not zero");
    endpoint.hang();
    std::thread::sleep(Duration::from_secs(2));
    let began = std::time::Instant::now();
    let metrics = exporter.metrics();
    assert!(metrics.get("fabric_exporter_source_interval_seconds", &[]) == Some(1.0));
    let name = endpoint.url("/csv/xcset/low_freq_debug?shard=0");
    assert!(
        metrics
            .sample("fabric_exporter_source_info", &[("source", &name), ("format", "ufm_csv")])
            .is_some()
    );
    assert!(exporter.stop().success());
    assert!(began.elapsed() < Duration::from_secs(20), "it does not wait for the endpoint");
}

#[test]
fn program_reads_a_directory_that_is_refilled_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let current = folder.path().join("current");
    let run = |name: &str, second: u64, errors: &str| {
        let run = folder.path().join(name);
        std::fs::create_dir(&run).unwrap();
        let file = run.join("telemetry.csv");
        std::fs::write(&file, csv(second, 3, errors)).unwrap();
        // Written some time ago, so that it is complete.
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(60)).unwrap();
        let link = folder.path().join("next");
        std::os::unix::fs::symlink(&run, &link).unwrap();
        std::fs::rename(link, &current).unwrap();
    };
    run("monday", 0, "5");
    let from = format!("--fabric.from={}", current.display());
    let mut exporter = rig::Exporter::without_devices(&[&from, "--fabric.interval=1s"]);
    exporter.wait_ready();
    wait_for(&exporter, "the first files", |metrics| {
        metrics.get("infiniband_port_receive_errors_total", &HOST) == Some(5.0)
    });
    run("tuesday", 300, "7");
    wait_for(&exporter, "the next files", |metrics| {
        metrics.get("infiniband_port_receive_errors_total", &HOST) == Some(7.0)
    });
    let overview = exporter.get("/api/v1/overview", &[]).text().to_owned();
    let overview: serde_json::Value = serde_json::from_str(&overview).unwrap();
    let source = &overview["fabrics"][0]["source"];
    assert_eq!(
        (&source["format"], &source["interval_seconds"]),
        (&"ufm_csv".into(), &300.0.into())
    );
    assert!(source["limits"][0].as_str().unwrap().contains("less than once a minute"), "{source}");
    let route = exporter.get("/api/v1/route?from=host-1&to=host-2", &[]);
    assert_eq!(route.status, 503);
    assert!(route.text().contains("not available from this source"), "{}", route.text());
    assert!(exporter.log().contains("less than once a minute"), "{}", exporter.log());
    assert!(exporter.stop().success());
}

#[test]
fn options_of_mads_are_refused_beside_a_source() {
    let folder = tempfile::tempdir().unwrap();
    for (option, says) in [
        ("--fabric.hca=mlx5_0", "from and hca"),
        ("--fabric.clear-saturated", "from and clear-saturated"),
        ("--fabric.m-key-file=/dev/null", "from and m-key-file"),
        ("--fabric.from=http://ufm", "is not a URL such as"),
    ] {
        let mut command = std::process::Command::new(rig::program());
        command.args(["serve", "--fabric.name=f"]);
        if !option.contains("fabric.from") {
            command.arg("--fabric.from=http://127.0.0.1:9/csv/xcset/low_freq_debug");
        }
        command.arg(option);
        let output = rig::child::run(
            "fabric-exporter",
            &mut command,
            folder.path(),
            Duration::from_secs(60),
        );
        assert_eq!(output.status.code(), Some(2), "{option}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{option}: {}", output.stderr);
    }
    let mut command = std::process::Command::new(rig::program());
    command.args(["links", "--fabric.from=http://127.0.0.1:9/csv"]);
    let output =
        rig::child::run("fabric-exporter", &mut command, folder.path(), Duration::from_secs(60));
    assert_eq!(output.status.code(), Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("is an option of serve"), "{}", output.stderr);
}
