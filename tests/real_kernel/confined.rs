//! What the process gives up, with root's rights to begin with: shown on the guest's kernel, for that
//! of the machine that the tests run on may be without Landlock.

use std::time::Duration;

use test_rig::guest::{Guest, GuestExporter};
use test_rig::wait_until;

const LIMIT: Duration = Duration::from_secs(120);

/// A demo with two hosts whose names are taken from /tmp/DIR/names/map, which is read each second.
struct Named {
    exporter: GuestExporter,
    dir: String,
    guid: String,
}

impl Named {
    fn start(name: &str, flags: &[&str]) -> Self {
        let dir = format!("/tmp/{name}");
        let guest = Guest::get();
        guest.must(&format!("mkdir -p {dir}/names {dir}/past {dir}/secret; : >{dir}/names/map"));
        let map = format!("--fabric.node-name-map={dir}/names/map");
        let history = format!("--history.file={dir}/past/history.db");
        let often = ["--fabric.interval=1s", "--fabric.discovery-interval=1s"];
        let exporter = GuestExporter::demo(&[&often, &[&*map, &*history], flags].concat());
        let guid = wait_until(LIMIT, "a node", || {
            let metrics = exporter.metrics();
            let (labels, _) = metrics.all("infiniband_node_info").next()?;
            Some(labels["guid"].clone())
        });
        Self { exporter, dir, guid }
    }

    /// Makes a map with a name for the node, and puts it in the place of the one before: as a file, or
    /// as a link to one in another folder.
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

    /// What each of its threads has of what makes it mighty, by /proc: once each.
    fn rights(&self) -> String {
        Guest::get().must(&format!(
            "cat /proc/{}/task/*/status | grep -E '^(NoNewPrivs|Cap)' | sort -u",
            self.exporter.pid()
        ))
    }
}

#[test]
fn it_gives_up_capabilities_and_the_files_of_others() {
    let named = Named::start("confined", &[]);
    let rights = named.rights();
    for nothing in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(rights.contains(&format!("{nothing}:\t0000000000000000")), "{rights}");
    }
    assert_eq!(rights.lines().count(), 6, "all threads have the same: {rights}");
    assert!(rights.contains("NoNewPrivs:\t1"), "{rights}");

    // What it is to read again it reads, also in another file of that name.
    named.name("renamed", false);
    wait_until(LIMIT, "the new name", || named.is_called("renamed").then_some(()));
    // And it records.
    let path = "/api/v1/history/dump?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z";
    let dump = named.exporter.get(path, &[]);
    assert_eq!(dump.status, 200, "GET {path}: {}", String::from_utf8_lossy(&dump.body));

    // The same file's name leads out of its folder: root might read it, this process may not.
    named.name("stolen", true);
    wait_until(LIMIT, "the refusal", || {
        named.exporter.log().contains("Permission denied").then_some(())
    });
    assert!(named.is_called("renamed"));
}

#[test]
fn it_goes_on_to_read_what_another_user_keeps_for_himself() {
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
    let often = ["--fabric.interval=1s", "--fabric.discovery-interval=1s"];
    named.exporter = GuestExporter::demo(&[&often[..], &[&*map]].concat());
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
fn it_keeps_all_that_if_it_is_told_to() {
    let named = Named::start("free", &["--process.confine=false"]);
    let rights = named.rights();
    assert!(rights.contains("NoNewPrivs:\t0"), "{rights}");
    assert!(!rights.contains("CapEff:\t0000000000000000"), "{rights}");
    named.name("followed", true);
    wait_until(LIMIT, "the name in another folder", || named.is_called("followed").then_some(()));
}
