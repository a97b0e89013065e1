//! Ratios beside those of the last release, which `benches/ratios.tsv` has: seconds are those of one machine, ratios
//! within one run hardly depend on it.

use std::collections::BTreeMap;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ratios.tsv");

/// A ratio that is larger than that of the last release by more than this share is marked: rounds of one program
/// differ by a tenth.
const NOTABLE: f64 = 0.15;

/// Whether the bench was started by `make bench-quick`: few rounds, one size.
pub fn is_quick() -> bool {
    std::env::args().any(|arg| arg == "quick")
}

fn last_release() -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string(FILE).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parse = |line: &str| {
        let (name, ratio) = line.split_once('\t').expect("a name, a tab and a ratio");
        (name.to_owned(), ratio.parse().expect("a ratio"))
    };
    lines.map(parse).collect()
}

/// Prints a ratio, of which less is better, beside that of the last release; with `UPDATE_RATIOS=1` it becomes that of
/// the release.
pub fn report(name: &str, now: f64) {
    let mut all = last_release();
    let before = all.insert(name.to_owned(), now);
    let compared = before.map_or("new".to_owned(), |before| {
        let change = now / before - 1.0;
        let mark = if change > NOTABLE { "  WORSE" } else { "" };
        format!("last release {before:.3}  {:+.0} %{mark}", change * 100.0)
    });
    println!("  {name:<60} {now:>7.3}  {compared}");
    if std::env::var_os("UPDATE_RATIOS").is_some() {
        let text = std::fs::read_to_string(FILE).unwrap();
        let head = text.lines().filter(|line| line.starts_with('#')).map(str::to_owned);
        let lines = all.iter().map(|(name, ratio)| format!("{name}\t{ratio:.3}"));
        let lines: Vec<String> = head.chain(lines).collect();
        std::fs::write(FILE, lines.join("\n") + "\n").unwrap();
    }
}
