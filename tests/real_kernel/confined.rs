//! What the process gives up after starting as root: tested on the guest's kernel, since that of the machine
//! that runs the tests may be without Landlock.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fabric_exporter::sandbox::opener::DeviceOpener;
use ib_umad::umad::{Umad, UmadPort};
use process_clock::Clock;

use test_rig::guest::{Guest, GuestExporter};
use test_rig::wait_until;

const LIMIT: Duration = Duration::from_secs(240);

const OFTEN: [&str; 3] = ["--hosts=2", "--fabric.interval=5s", "--fabric.discovery-interval=5s"];

/// One demo at a time, and with a few devices: in the emulated guest, on a busy machine, a sweep of 13 nodes took 1.5 s
/// while three demos ran, and a scrape more than 60 s. The threads of the server have a lower priority than sweeps.
static ONE_DEMO: Mutex<()> = Mutex::new(());

/// A demo with two hosts whose names come from /tmp/DIR/names/map, which is read every five seconds.
struct Named {
    /// It ends before the next one may begin.
    exporter: GuestExporter,
    dir: String,
    guid: String,
    _alone: MutexGuard<'static, ()>,
}

impl Named {
    fn start(name: &str, flags: &[&str]) -> Self {
        let alone = ONE_DEMO.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = format!("/tmp/{name}");
        let guest = Guest::get();
        guest.must(&format!("mkdir -p {dir}/names {dir}/past {dir}/secret; : >{dir}/names/map"));
        let map = format!("--fabric.node-name-map={dir}/names/map");
        let history = format!("--history.file={dir}/past/history.db");
        let exporter = GuestExporter::demo(&[&OFTEN[..], &[&*map, &*history], flags].concat());
        let guid = wait_until(LIMIT, "a node", || {
            let metrics = exporter.metrics();
            let (labels, _) = metrics.all("infiniband_node_info").next()?;
            Some(labels["guid"].clone())
        });
        Self { exporter, dir, guid, _alone: alone }
    }

    /// Writes a map with a name for the node in place of the previous one: as a file, or as a link to one in
    /// another folder.
    fn name(&self, name: &str, elsewhere: bool) {
        let Self { dir, guid, .. } = self;
        let entry = format!("echo '{guid} \"{name}\"'");
        Guest::get().must(&if elsewhere {
            format!("cd {dir}; {entry} >secret/map; ln -s ../secret/map names/new; mv names/new names/map")
        } else {
            format!("cd {dir}; {entry} >names/new; mv names/new names/map")
        });
    }

    fn is_called(&self, name: &str) -> bool {
        let labels = [("guid", &*self.guid), ("node", name)];
        self.exporter.metrics().get("infiniband_node_info", &labels).is_some()
    }

    /// The distinct privileges of its threads, by /proc.
    fn rights(&self) -> String {
        Guest::get().must(&format!(
            "cat /proc/{}/task/*/status | grep -E '^(NoNewPrivs|Cap)' | sort -u",
            self.exporter.pid()
        ))
    }
}

#[test]
fn sandbox_drops_capabilities_and_foreign_files() {
    let named = Named::start("confined", &[]);
    let rights = named.rights();
    for nothing in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(rights.contains(&format!("{nothing}:\t0000000000000000")), "{rights}");
    }
    assert_eq!(rights.lines().count(), 6, "all threads have the same: {rights}");
    assert!(rights.contains("NoNewPrivs:\t1"), "{rights}");

    // A file that it has to read again it can read, also another file with that name.
    named.name("renamed", false);
    wait_until(LIMIT, "the new name", || named.is_called("renamed").then_some(()));
    // And the history is recorded.
    let path = "/api/v1/history/dump?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z";
    let dump = named.exporter.get(path, &[]);
    assert_eq!(dump.status, 200, "GET {path}: {}", String::from_utf8_lossy(&dump.body));

    // The same name leads out of its folder: root could read it, this process may not.
    named.name("stolen", true);
    wait_until(LIMIT, "the refusal", || {
        named.exporter.log().contains("Permission denied").then_some(())
    });
    assert!(named.is_called("renamed"));
}

#[test]
fn sandbox_keeps_reading_private_files_of_other_users() {
    let mut named = Named::start("others", &[]);
    named.exporter.stop();
    let (dir, guid) = (named.dir.clone(), named.guid.clone());
    let map = format!("--fabric.node-name-map={dir}/names/map");
    let give = |name: &str| {
        let entry = format!("echo '{guid} \"{name}\"' >names/new");
        Guest::get().must(&format!(
            "cd {dir}; {entry}; chown 65534 names/new; chmod 400 names/new; mv names/new names/map"
        ));
    };
    give("before");
    named.exporter = GuestExporter::demo(&[&OFTEN[..], &[&*map]].concat());
    let rights = named.rights();
    for kept in ["CapPrm", "CapEff", "CapBnd"] {
        // CAP_DAC_READ_SEARCH, capabilities(7), and no other.
        assert!(rights.contains(&format!("{kept}:\t0000000000000004")), "{rights}");
    }
    wait_until(LIMIT, "the name", || named.is_called("before").then_some(()));
    give("after");
    wait_until(LIMIT, "the new name", || named.is_called("after").then_some(()));
}

#[test]
fn sandbox_can_be_disabled() {
    let named = Named::start("free", &["--process.confine=false"]);
    let rights = named.rights();
    assert!(rights.contains("NoNewPrivs:\t0"), "{rights}");
    assert!(!rights.contains("CapEff:\t0000000000000000"), "{rights}");
    named.name("followed", true);
    wait_until(LIMIT, "the name in another folder", || named.is_called("followed").then_some(()));
}

/// The real, effective, saved and file system ids of a process, by /proc.
fn ids(pid: &str) -> String {
    Guest::get()
        .must(&format!("grep -hE '^(Uid|Gid|Groups|Seccomp):' /proc/{pid}/task/*/status | sort -u"))
}

#[test]
fn serve_as_root_becomes_nobody() {
    let guest = Guest::get();
    let _device = guest.testhca("becomes", 1, true);
    let host = ["--no-collector.fabric", "--host.device-include=becomes"];
    guest.must(
        "mkdir -p /tmp/root; echo 'basic_auth_users: {}' >/tmp/root/web; chmod 400 /tmp/root/web",
    );
    let web = "--web.config.file=/tmp/root/web";
    let mut exporter = GuestExporter::start(&[&host[..], &[web]].concat());
    let pid = exporter.pid();
    let ids = ids(&pid.to_string());
    assert!(ids.contains("Uid:\t65534\t65534\t65534\t65534"), "{ids}");
    assert!(ids.contains("Seccomp:\t2") && !ids.contains("Gid:\t0"), "{ids}");
    assert_eq!(ids.lines().count(), 4, "all threads have the same: {ids}");
    let metrics = exporter.metrics();
    assert!(metrics.get_u64("process_open_fds", &[]).unwrap() > 3);
    assert!(metrics.get_u64("process_resident_memory_bytes", &[]).unwrap() > 0);
    let rights = guest.must(&format!("grep -h ^CapEff /proc/{pid}/status"));
    assert_eq!(
        rights.trim(),
        "CapEff:\t0000000000000004",
        "CAP_DAC_READ_SEARCH, for the web config"
    );

    // A file that only root can read is reloaded.
    guest.must("cd /tmp/root; echo 'http_server_config: {headers: {X-Frame-Options: deny}}' >new; chmod 400 new; mv new web");
    wait_until(LIMIT, "the header", || {
        exporter.get("/-/healthy", &[]).header("x-frame-options").map(drop)
    });
    assert_eq!(exporter.stop(), 0, "{}", exporter.log());
}

/// The environment variable that makes this test program the client of [`DeviceOpener`], in the guest.
const CLIENT: &str = "OPENS_UMAD_OF";

/// As an exporter that was started by root: it opens the device directly, and by the process that it has started.
fn open_as_nobody(hca: &str) {
    let sysfs = Path::new("/sys");
    let opener = DeviceOpener::start_program(Path::new("/bin/fabric-exporter"), sysfs).unwrap();
    let nobody = rustix::process::Uid::from_raw(65534);
    rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    let port = UmadPort::all(sysfs).into_iter().find(|port| port.hca == hca).unwrap();
    let open = |opener| {
        let classes = [ib_mad::Class::Performance];
        Umad::open(sysfs, &port, &classes, None, Clock::start(), opener)
    };
    println!("directly: {}", open(None).unwrap_err());
    let by_opener = move |device: &Path| opener.open(device);
    let umad = open(Some(&by_opener)).unwrap();
    println!("by the opener: {umad:?}");
    let refused = by_opener(Path::new("/dev/infiniband/uverbs0")).unwrap_err();
    println!("another device: {refused}");
    let second = std::fs::read_to_string("/proc/thread-self/children").unwrap();
    let second = second.trim();
    let status = std::fs::read_to_string(format!("/proc/{second}/status")).unwrap();
    println!("{status}");
}

#[test]
fn umad_device_is_opened_for_a_process_that_is_not_root() {
    if let Some(hca) = std::env::var_os(CLIENT) {
        return open_as_nobody(hca.to_str().unwrap());
    }
    let guest = Guest::get();
    let rxe = guest.rxe("rootonly");
    let stripped = std::process::Command::new(test_rig::require("strip"))
        .arg("-o")
        .arg(guest.share().join("real-kernel"))
        .arg(std::env::current_exe().unwrap())
        .status();
    assert!(stripped.unwrap().success());
    let mode = guest.must("cp /share/real-kernel /bin/real-kernel; ls -l /dev/infiniband/umad*");
    assert!(mode.contains("crw-------"), "only root can open it: {mode}");
    let test = "confined::umad_device_is_opened_for_a_process_that_is_not_root";
    let name = rxe.name();
    // It needs no more of the guest's few megabytes.
    let output = guest.must(&format!(
        "{CLIENT}={name} /bin/real-kernel --exact --nocapture {test}; rm /bin/real-kernel; sleep 0.2; \
         ps | grep 'opens umad' | grep -v grep | wc -l"
    ));
    let line = |beginning: &str| {
        let found = output.lines().find_map(|line| line.strip_prefix(beginning));
        found.unwrap_or_else(|| panic!("no line {beginning:?} in {output}")).to_owned()
    };
    assert!(line("directly: ").contains("no permission to open /dev/infiniband/umad"), "{output}");
    assert!(line("by the opener: ").starts_with("Umad"), "{output}");
    assert!(line("another device: ").contains("Invalid argument"), "{output}");
    assert!(line("Uid:").starts_with("\t0\t"), "{output}");
    assert_eq!(line("Seccomp:").trim(), "2", "{output}");
    assert_eq!(line("CapEff:").trim(), "0000000000000002", "CAP_DAC_OVERRIDE: {output}");
    assert_eq!(
        output.lines().last().map(str::trim),
        Some("0"),
        "it ended with the other: {output}"
    );
}

#[test]
fn serve_as_root_stays_root_only_if_it_may() {
    let guest = Guest::get();
    let _device = guest.testhca("stays", 1, true);
    let host = ["--no-collector.fabric", "--host.device-include=stays"];
    let user = |flags: &[&str]| {
        let exporter = GuestExporter::start(&[&host, flags].concat());
        (ids(&exporter.pid().to_string()), exporter.log())
    };
    let (root, log) = user(&["--process.allow-root"]);
    assert!(root.contains("Uid:\t0"), "{root}");
    assert!(log.contains("level=warn") && log.contains("--process.allow-root"), "{log}");
    let (number, _) = user(&["--process.user=4711:4712"]);
    assert!(number.contains("Uid:\t4711\t4711") && number.contains("Gid:\t4712\t4712"), "{number}");
    // Also without the rest of the sandbox.
    let (free, _) = user(&["--process.confine=false"]);
    assert!(free.contains("Uid:\t65534") && free.contains("Seccomp:\t0"), "{free}");
    for wrong in ["--process.user=nosuchuser", "--process.user=root"] {
        let output = test_rig::guest::run_to_exit(&["serve", "--no-collector.fabric", wrong]);
        assert_eq!(output.status, 2, "{output:?}");
        assert!(output.text.contains("--process.user"), "{output:?}");
    }
}

#[test]
fn history_of_root_is_given_to_the_user() {
    let guest = Guest::get();
    let _device = guest.testhca("given", 1, true);
    guest.must("mkdir -p /tmp/given; chown 4713:4713 /tmp/given; mkdir -p /tmp/kept");
    let start = |folder: &str| {
        let history = format!("--history.file=/tmp/{folder}/h.db");
        let flags = ["--no-collector.fabric", "--host.device-include=given", "--host.interval=1s"];
        GuestExporter::start(&[&flags[..], &[&history, "--process.user=4713"]].concat())
    };
    let recorded = |exporter: &GuestExporter| {
        wait_until(LIMIT, "frames", || {
            let frames = exporter.metrics().get_u64("fabric_exporter_history_frames_total", &[]);
            frames.filter(|&frames| frames > 1)
        });
    };
    let capabilities = |exporter: &GuestExporter| {
        let text = guest.must(&format!("grep -h ^CapEff /proc/{}/status", exporter.pid()));
        text.trim().trim_start_matches("CapEff:\t").to_owned()
    };
    let exporter = start("given");
    recorded(&exporter);
    assert_eq!(capabilities(&exporter), "0000000000000000");
    let owners = guest.must("stat -c %u /tmp/given/*");
    assert!(owners.lines().count() >= 2 && owners.lines().all(|owner| owner == "4713"), "{owners}");
    // A directory of root stays as it is: then the capability to write there is kept, and the log says how to do without.
    let exporter = start("kept");
    recorded(&exporter);
    assert_eq!(capabilities(&exporter), "0000000000000002");
    assert!(exporter.log().contains("CAP_DAC_OVERRIDE is kept"), "{}", exporter.log());
    assert!(guest.must("stat -c %u /tmp/kept/h.db").starts_with('0'));
}
