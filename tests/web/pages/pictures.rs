//! The screenshots in the README: taken from the demo, and written to docs/pictures by `make docs`.

use std::path::Path;
use std::time::Duration;

use crate::pages::{demo, overview};
use test_rig::browser::Browser;
use test_rig::wait_until;

#[test]
fn pictures_show_something() {
    let folder = if std::env::var_os("UPDATE_DOCS").is_some() {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures")
    } else {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures")
    };
    std::fs::create_dir_all(&folder).unwrap();
    let exporter = demo(&[]);
    // Wait until nearly all links were watched for long enough.
    wait_until(Duration::from_secs(90), "the story", || {
        let told = overview(&exporter);
        let verdicts = &told["fabrics"][0]["verdicts"];
        (verdicts["ok"].as_u64() > Some(58) && verdicts["bad"] == 2).then_some(())
    });
    let browser = Browser::at(exporter.address(), (1200, 800));
    browser.open("/");
    let cable = browser.run("return document.querySelector('.cables a').getAttribute('href')");
    let cable = format!("{}&window=1h", cable.as_str().unwrap());
    let leaf: serde_json::Value =
        serde_json::from_str(exporter.get("/api/v1/search?q=leaf-0-1", &[]).text()).unwrap();
    let leaf = leaf["hits"][0]["page"].as_str().unwrap();
    // Each as high as its content: the plot of a link is further down.
    for (name, path, height) in [
        ("overview", "/", 800),
        ("link", &*cable, 900),
        ("topology", "/topology", 760),
        ("switch", leaf, 900),
        ("links", "/links", 640),
        ("switches", "/switches", 480),
        ("hosts", "/hosts", 640),
        ("traffic", "/traffic", 640),
        ("modules", "/modules", 640),
        ("events", "/events", 640),
        ("host", "/host", 900),
        ("roce", "/host#mlx5_8", 480),
        ("rails", "/hosts?text=gpu-0", 540),
        ("search", "/search?q=leaf-0", 640),
        ("runbook", "/runbooks/InfinibandCableBad", 640),
    ] {
        browser.resize(1200, height);
        browser.open(path);
        let file = folder.join(format!("{name}.png"));
        browser.picture(&file);
        let bytes = std::fs::metadata(&file).unwrap().len();
        // An empty window has 5 kB.
        assert!((20_000..200_000).contains(&bytes), "{}: {bytes} bytes", file.display());
    }
}
