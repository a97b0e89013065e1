//! The Debian package: built by cargo-deb from the test build, and installed in a guest with systemd.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::{MANUALS, TREE, program, tool};
use test_rig::guest::Guest;
use test_rig::require;

/// Two versions of the package.
struct Built {
    _dir: TempDir,
    files: [PathBuf; 2],
}

const VERSIONS: [&str; 2] = ["0.1.0-1", "0.1.1-1"];

static BUILT: LazyLock<Built> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let profile = program().parent().unwrap();
    let target = profile.parent().unwrap();
    let profile = if profile.ends_with("debug") { "dev" } else { "release" };
    LazyLock::force(&MANUALS);
    let files = VERSIONS.map(|version| {
        let file = dir.path().join(format!("fabric-exporter_{version}.deb"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(TREE).env("CARGO_TARGET_DIR", target);
        cargo.args(["deb", "--no-build", "--locked", "--offline", "--fast", "--profile", profile]);
        cargo.args(["--deb-version", version, "--output"]).arg(&file);
        let output = tool(&mut cargo);
        assert!(file.exists(), "cargo deb (installed by make packages): {output}");
        file
    });
    Built { _dir: dir, files }
});

/// The files in the package, without a leading slash.
pub fn contents() -> Vec<String> {
    let mut dpkg = Command::new(require("dpkg-deb"));
    let listing = tool(dpkg.arg("--contents").arg(&BUILT.files[0]));
    let names = listing.lines().filter_map(|line| line.split_once(" ./").map(|(_, name)| name));
    names.filter(|name| !name.is_empty() && !name.ends_with('/')).map(str::to_owned).collect()
}

/// Runs a script in the guest; its name and duration are in the test's output.
fn step(guest: &Guest, what: &str, script: &str) -> String {
    let begun = std::time::Instant::now();
    let output = guest.must(&format!("set -e\n{FUNCTIONS}\n{script}"));
    println!("{what}: {:.1?}", begun.elapsed());
    output
}

/// `until_so` waits for a command to succeed, within a limit; `scrape` gets the metrics.
const FUNCTIONS: &str = "
until_so() { left=200; until \"$@\"; do left=$((left - 1)); [ $left -gt 0 ]; sleep 0.1; done; }
scrape() {
    bash -c 'exec 3<>/dev/tcp/127.0.0.1/10315 && printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3 && cat <&3'
}
shows_device() {
    bash -c 'exec 3<>/dev/tcp/127.0.0.1/10315 && printf \"GET / HTTP/1.0\\r\\n\\r\\n\" >&3 && cat <&3' 2>/dev/null | grep -q soft
}
swept() { scrape | grep -q '^fabric_exporter_sweeps_total.* [1-9]'; }
prop() { systemctl show -P $1 fabric-exporter.service; }
is() { [ \"$1\" = \"$2\" ] || { echo \"$3: is $1, expected $2\"; exit 1; }; }
";

#[test]
fn deb_installs_upgrades_and_purges_under_systemd() {
    let guest = Guest::debian();
    for file in &BUILT.files {
        let name = Path::new(file.file_name().unwrap());
        std::fs::copy(file, guest.share().join(name)).unwrap();
    }
    step(
        &guest,
        "a device",
        "
        ip link add end0 type veth peer name end1; ip link set end0 up
        rdma link add soft type rxe netdev end0
        until_so [ -e /dev/infiniband/umad0 ]
        is $(stat -c %U:%G:%a /dev/infiniband/umad0) root:root:600 'umad by itself'",
    );
    let output = step(&guest, "installation", "
        dpkg -i /share/fabric-exporter_0.1.0-1.deb 2>&1
        udevadm settle
        is $(stat -c %U:%G:%a /dev/infiniband/umad0) root:fabric-exporter:660 umad
        for issm in /dev/infiniband/issm*; do is $(stat -c %G /dev/infiniband/issm0) root issm; done
        is \"$(systemctl is-enabled fabric-exporter.service fabric-exporter-host.service | sort -u)\" disabled units
        is \"$(systemctl is-active fabric-exporter.service)\" inactive service");
    assert!(!output.contains("arning"), "{output}");
    step(
        &guest,
        "first page of a host with soft RoCE",
        "
        systemctl start fabric-exporter-host.service
        until_so shows_device
        systemctl stop fabric-exporter-host.service",
    );
    step(&guest, "start by a scrape", "
        mkdir -p /etc/systemd/system/fabric-exporter.service.d
        # No InfiniBand here: a simulated fabric, in the service's own sandbox.
        cat >/etc/systemd/system/fabric-exporter.service.d/demo.conf <<'UNIT'
[Service]
# What it may do with this host's devices and files.
ExecStartPre=/bin/sh -c '(: <>/dev/infiniband/umad0) && ! (: </dev/infiniband/issm0) && ! (: </dev/vda) && ! (: >/etc/fabric-exporter/mine) && ! (: >/usr/mine)'
ExecStart=
ExecStart=/usr/bin/fabric-exporter demo --log.level=info --history.file=/var/lib/fabric-exporter/history.db $ARGS
UNIT
        echo 'ARGS=\"--web.systemd-socket\"' >/etc/default/fabric-exporter
        echo '# ours' >>/etc/fabric-exporter/config.yml
        systemctl daemon-reload
        systemctl enable -q --now fabric-exporter.socket
        is $(systemctl is-active fabric-exporter.service || true) inactive 'service before a scrape'
        until_so swept
        is $(prop ActiveState) active service
        is $(prop WatchdogUSec) 1min watchdog
        until_so sh -c 'systemctl show -P StatusText fabric-exporter.service | grep -q \"ports, .* sweeps\"'
        pid=$(prop MainPID)
        for line in 'NoNewPrivs: 1' 'Seccomp: 2' 'CapEff: 0000000000000000' 'CapBnd: 0000000000000000'; do
            tr '\\t' ' ' </proc/$pid/status | grep -x \"$line\" || { cat /proc/$pid/status; exit 1; }
        done
        is $(stat -c %U /proc/$pid) fabric-exporter 'its user'
        is $(stat -c %U:%a /var/lib/fabric-exporter/history.db) fabric-exporter:600 history
        journalctl --no-pager -u fabric-exporter.service >/tmp/journal
        ! grep -E 'level=(warn|error)|not confined' /tmp/journal
        echo $pid >/tmp/pid; stat -c %i /var/lib/fabric-exporter/history.db >/tmp/inode");
    step(&guest, "upgrade", "
        dpkg -i /share/fabric-exporter_0.1.1-1.deb 2>&1
        until_so swept
        [ $(prop MainPID) != $(cat /tmp/pid) ] || { echo not restarted; exit 1; }
        is $(prop ActiveState) active service
        is $(prop NRestarts) 0 restarts
        is $(systemctl is-active fabric-exporter.socket) active socket
        grep -q systemd-socket /etc/default/fabric-exporter
        grep -q ours /etc/fabric-exporter/config.yml
        is $(stat -c %i /var/lib/fabric-exporter/history.db) $(cat /tmp/inode) history
        # The history file has the start before the upgrade, too, each of fabric and host.
        starts() { fabric-exporter history events --kind exporter_start --file /var/lib/fabric-exporter/history.db | grep -c exporter_start; }
        four_starts() { [ $(starts) = 4 ]; }
        until_so four_starts || { starts; exit 1; }");
    hanging_service_is_restarted(&guest);
    step(
        &guest,
        "removal",
        "
        dpkg --remove fabric-exporter 2>&1
        is $(systemctl is-active fabric-exporter.service || true) inactive service
        ! scrape 2>/dev/null
        [ ! -e /usr/bin/fabric-exporter ]
        [ -e /var/lib/fabric-exporter/history.db ]
        grep -q ours /etc/fabric-exporter/config.yml",
    );
    step(
        &guest,
        "installation again",
        "
        dpkg -i /share/fabric-exporter_0.1.1-1.deb 2>&1
        # An enabled unit is enabled again; an installation starts nothing.
        is $(systemctl is-enabled fabric-exporter.socket) enabled socket
        systemctl start fabric-exporter.socket
        until_so swept
        grep -q ours /etc/fabric-exporter/config.yml",
    );
    step(&guest, "purge", "
        rm -r /etc/systemd/system/fabric-exporter.service.d
        dpkg --purge fabric-exporter 2>&1
        ! getent passwd fabric-exporter
        left=$(find / -xdev -name '*fabric-exporter*' -not -path '/share/*' -not -path '/tmp/*' -not -path '/var/tmp/*')
        is \"$left\" '' 'left behind'");
}

/// systemd kills a program that stops its watchdog pings, and restarts it.
fn hanging_service_is_restarted(guest: &Guest) {
    step(
        guest,
        "watchdog timeout",
        "
        printf '[Service]\\nWatchdogSec=10s\\nRestartSec=100ms\\n' >/etc/systemd/system/fabric-exporter.service.d/watchdog.conf
        systemctl daemon-reload
        systemctl restart fabric-exporter.service
        until_so swept
        is $(prop WatchdogUSec) 10s watchdog
        pid=$(prop MainPID)
        kill -STOP $pid
        again() { [ $(prop NRestarts) = 1 ]; }
        until_so again
        until_so swept
        [ $(prop MainPID) != $pid ]
        journalctl --no-pager -u fabric-exporter.service | grep -q 'Watchdog timeout'",
    );
}
