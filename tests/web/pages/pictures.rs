//! The pictures of the README: taken of the demo, and kept in docs/pictures by `make docs`.

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
    // So late that nearly all cables were watched for long enough.
    wait_until(Duration::from_secs(90), "the story", || {
        let told = overview(&exporter);
        let verdicts = &told["fabrics"][0]["verdicts"];
        (verdicts["ok"].as_u64() > Some(50) && verdicts["bad"] == 2).then_some(())
    });
    let browser = Browser::at(exporter.address(), (1100, 800));
    browser.open("/");
    let cable = browser.run("return document.querySelector('.cables a').getAttribute('href')");
    // As high as what is to be seen: of a cable its course, which stands further down.
    for (name, path, height) in [
        ("overview", "/", 800),
        ("link", &format!("{}&window=1h", cable.as_str().unwrap()), 900),
        ("topology", "/topology", 640),
    ] {
        browser.resize(1100, height);
        browser.open(path);
        let file = folder.join(format!("{name}.png"));
        browser.picture(&file);
        let bytes = std::fs::metadata(&file).unwrap().len();
        // A window without anything in it has 5 kB.
        assert!((20_000..150_000).contains(&bytes), "{}: {bytes} bytes", file.display());
    }
}
