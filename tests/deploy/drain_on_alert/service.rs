//! The script as a service: what it answers, and a notification of Alertmanager itself.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use test_rig::child::Running;
use test_rig::promtool::fed;
use test_rig::{Alertmanager, wait_until};

use crate::drain_on_alert::{ACT, BAD, Cluster, cable, notification};

/// The script as a service.
struct Service {
    address: String,
    _running: Running,
}

impl Cluster {
    fn serve(&self, options: &[&str]) -> Service {
        let log = self.folder.path().join("log");
        let mut command = self.command(&[&["--listen", "127.0.0.1:0"], options].concat());
        command.stdin(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
        let mut running = Running::spawn("drain-on-alert", &mut command);
        let address = wait_until(Duration::from_secs(30), "drain-on-alert to listen", || {
            let text = std::fs::read_to_string(&log).unwrap();
            assert!(running.try_wait().is_none(), "{text}");
            let line = text.lines().find_map(|line| line.strip_prefix("listening on "))?;
            Some(line.split(',').next().unwrap().to_owned())
        });
        Service { address, _running: running }
    }
}

impl Service {
    /// The status of the answer to a request.
    fn ask(&self, method: &str, headers: &[&str], body: &str) -> u16 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let headers: Vec<String> = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let headers = headers.concat();
        let length = body.len();
        write!(stream, "{method} / HTTP/1.1\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
            .unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
    }

    fn post(&self, body: &str) -> u16 {
        self.ask("POST", &[JSON], body)
    }
}

const JSON: &str = "Content-Type: application/json";

#[test]
fn answers_tell_alertmanager_what_to_send_again() {
    let cluster = Cluster::new(3);
    let service = cluster.serve(ACT);
    assert_eq!(service.ask("GET", &[], ""), 501);
    assert_eq!(service.ask("POST", &["Content-Type: text/plain"], "{}"), 415);
    assert_eq!(service.post("{}"), 400);
    assert_eq!(service.post(&notification(&[cable(BAD, "gpu1")])), 200);
    assert_eq!(cluster.drained(), ["gpu1"]);
    cluster.fails("update");
    assert_eq!(service.post(&notification(&[cable(BAD, "gpu2")])), 500);
    std::fs::remove_file(cluster.folder.path().join("fails-update")).unwrap();
    assert_eq!(service.post(&notification(&[cable(BAD, "gpu2")])), 200);
    assert_eq!(cluster.drained(), ["gpu1", "gpu2"]);

    let token = cluster.folder.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let service = cluster.serve(&["--token-file", token.to_str().unwrap()]);
    assert_eq!(service.post("{}"), 401);
    assert_eq!(service.ask("POST", &[JSON, "Authorization: Bearer other"], "{}"), 401);
    assert_eq!(service.ask("POST", &[JSON, "Authorization: Bearer secret"], "{}"), 400);
}

/// With the route and the receiver that the README names.
#[test]
fn alertmanager_drains_a_node() {
    let cluster = Cluster::new(3);
    let service = cluster.serve(ACT);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/drain-on-alert/alertmanager.yml");
    let config = std::fs::read_to_string(file).unwrap();
    assert!(config.contains("127.0.0.1:9199") && config.contains("group_wait: 1m"));
    let config = config
        .replace("127.0.0.1:9199", &service.address)
        .replace("group_wait: 1m", "group_wait: 0s\n      group_interval: 1s");
    let alertmanager = Alertmanager::start(&config);
    let add = |labels: &[&str]| {
        let url = format!("--alertmanager.url=http://{}", alertmanager.address());
        let (code, said) = fed("amtool", &[&[url.as_str(), "alert", "add"], labels].concat(), "");
        assert_eq!(code, Some(0), "{said}");
    };
    let between = [
        "alertname=InfinibandCableBad",
        "fabric=f",
        "link=1:1-2:1",
        "node_type=switch",
        "peer_node_type=switch",
    ];
    add(&between);
    add(&["alertname=InfinibandNodeDown", "fabric=f", "host=gpu1"]);
    add(&[
        "alertname=InfinibandCableBad",
        "fabric=f",
        "link=1:2-3:1",
        "node_type=switch",
        "peer_node_type=ca",
        "peer_host=gpu2",
    ]);
    wait_until(Duration::from_secs(40), "the node to be drained", || {
        (cluster.drained() == ["gpu2"]).then_some(())
    });
}
