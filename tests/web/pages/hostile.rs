//! Names come from devices, and whoever has a device can give it any. They are shown as they are.

use crate::pages::demo;
use test_rig::browser::Browser;

/// Names that mean something to HTML, to addresses, or to how text runs.
const NAMES: [&str; 4] = [
    "<script>document.title='taken'</script>",
    "a'b&amp;c d#e?f=%41",
    "\u{202e}drawkcab\u{2066}",
    "long-long-long-long-long-long-long-long-long-long-long-long-long-name",
];

#[test]
fn names_are_text_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("names");
    // The hosts of the demo are numbered from 0x0002c90300000000 on, by 16.
    let lines = NAMES.iter().enumerate().map(|(place, name)| {
        format!("{:#018x} \"{name}\"\n", 0x0002_c903_0000_0000_u64 + 16 * place as u64)
    });
    std::fs::write(&map, lines.collect::<String>()).unwrap();
    let exporter = demo(&[&format!("--fabric.node-name-map={}", map.display())]);
    let browser = Browser::at(exporter.address(), (400, 800));
    for (place, name) in NAMES.iter().enumerate() {
        // Typed into the search, for that is what takes text and makes addresses of it.
        browser.open("/");
        let typed = serde_json::to_string(name).unwrap();
        browser.run(&format!(
            "const it = document.querySelector('#q'); it.value = {typed}; it.form.submit()"
        ));
        test_rig::wait_until(std::time::Duration::from_secs(30), "its page", || {
            browser.path().starts_with("/node/").then_some(())
        });
        let guid = format!("{:#018x}", 0x0002_c903_0000_0000_u64 + 16 * place as u64);
        assert!(browser.path().starts_with(&format!("/node/{guid}")), "{name}: {}", browser.path());
        let shown = browser.run("return document.body.textContent");
        assert!(shown.as_str().unwrap().contains(name), "{name}: {shown}");
        for path in [browser.path(), "/links?text=leaf-0-0".into(), "/topology".into()] {
            browser.open(&path);
            assert_eq!(browser.run("return document.querySelectorAll('script').length"), 0);
            assert_ne!(browser.run("return document.title"), "taken");
            let width = browser.run("return document.documentElement.scrollWidth");
            assert!(width.as_u64() <= Some(400), "{path}: {width} wide");
        }
    }
    assert_eq!(browser.complaints(), [""; 0]);
}
