//! Small trees of files in memory.

use std::path::Path;

use crate::check;
use crate::modules::Modules;

/// What is found in crates `low` and `high`, without the last line, which says what to do.
fn findings(files: &[(&str, &str)], layers: &str) -> Vec<String> {
    let read = |file: &Path| {
        let found = files.iter().find(|(name, _)| Path::new("crates").join(name) == file);
        found.map(|(_, text)| (*text).to_owned())
    };
    let mut modules = Modules::new(&read);
    modules.add_package("low", "crates/low/src").unwrap();
    modules.add_package("high", "crates/high/src").unwrap();
    match check(&modules, layers) {
        Ok(_) => Vec::new(),
        Err(text) => {
            let lines = text.lines().map(|line| line.trim().replace("crates/low/src/", ""));
            let mut lines: Vec<String> = lines.collect();
            lines.pop();
            lines
        }
    }
}

fn in_low(files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<(String, &str)> =
        files.iter().map(|(name, text)| (format!("low/src/{name}"), *text)).collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    findings(&files, "low")
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let files = [
        ("lib.rs", "mod a; pub mod b; pub mod c;"),
        ("a.rs", "use crate::b::B; pub struct A; fn f(b: B) {}"),
        ("b.rs", "pub struct B; fn g() -> &'static super::c::C { C }"),
        ("c.rs", "pub struct C; fn h() { html! { p { (crate::a::A) } } }"),
    ];
    let expected = ["circle of 3 files:", "a.rs -> b.rs: B", "b.rs -> c.rs: C", "c.rs -> a.rs: A"];
    assert_eq!(in_low(&files), expected);
}

#[test]
fn a_keyword_without_a_name_hides_nothing() {
    let uses = [
        "fn f(g: fn(&crate::b::B)) {}",
        "fn f(g: *const crate::b::B) {}",
        "fn f() -> usize { const { crate::b::B::SIZE } }",
        "fn f(all: Set) { all.union(&[crate::b::B]) }",
    ];
    for text in uses {
        let a = format!("pub struct A; {text}");
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", a.as_str()),
            ("b.rs", "pub struct B(crate::a::A);"),
        ];
        assert_eq!(in_low(&files).len(), 3, "{text}");
    }
}

#[test]
fn an_exported_name_counts_for_the_file_that_defines_it() {
    let mut files = [
        ("lib.rs", "mod a; mod b; pub use a::*; pub(crate) use self::b::{B, other};"),
        ("a.rs", "labeled_enum! { pub enum A { One } }"),
        ("b/mod.rs", "mod inner; pub use inner::B; pub fn other() {}"),
        ("b/inner.rs", "use crate::A; pub struct B(A);"),
    ];
    assert!(in_low(&files).is_empty());
    files[1].1 = "labeled_enum! { pub enum A { One(crate::B) } }";
    assert_eq!(
        in_low(&files),
        ["circle of 2 files:", "a.rs -> b/inner.rs: B", "b/inner.rs -> a.rs: A"]
    );
}

#[test]
fn a_module_whose_code_uses_those_below_defines_nothing_for_them() {
    let child = ("a.rs", "use super::Shared; pub struct A(Shared); pub fn of() { models! {} }");
    assert!(in_low(&[("lib.rs", "mod a; pub use a::A; pub struct Shared;"), child]).is_empty());
    let root = "macro_rules! models { () => {} } mod a; pub use a::A; pub struct Shared; fn f() -> A { a::of() }";
    let expected =
        ["circle of 2 files:", "a.rs -> lib.rs: Shared, models", "lib.rs -> a.rs: A, of"];
    assert_eq!(in_low(&[("lib.rs", root), child]), expected);
}

#[test]
fn code_for_tests_is_not_read() {
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg(any(test, feature = \"testing\"))] pub mod testing;"),
        (
            "a.rs",
            "pub struct A { #[cfg(test)] b: crate::b::B } #[cfg(test)] mod tests { use crate::b::B; }",
        ),
        ("b.rs", "#[cfg(test)] fn f<K, V>(b: B) -> K { crate::a::A } pub struct B(crate::a::A);"),
    ];
    assert!(in_low(&files).is_empty());
}

#[test]
fn an_import_from_a_higher_layer_is_found() {
    let files = [("low/src/lib.rs", "use high::High;"), ("high/src/lib.rs", "pub struct High;")];
    assert_eq!(
        findings(&files, "high # of the text\nlow"),
        ["not in layers.txt: high", "does not exist, but in layers.txt: high # of the text"]
    );
    assert!(findings(&files, "# lowest first\n\nhigh\nlow").is_empty());
    let expected = ["up the layers: lib.rs -> crates/high/src/lib.rs: High"];
    assert_eq!(findings(&files, "low\nhigh"), expected);
}

#[test]
fn names_are_exported_as_they_are_defined() {
    let files = [
        ("lib.rs", "mod a; pub use a::{self as b, A as B, Trait as _}; use a::A as C;"),
        ("a.rs", "pub struct A;"),
    ];
    let expected = ["lib.rs: a as b", "lib.rs: a::A as B"];
    assert_eq!(in_low(&files), expected.map(|it| format!("exported under another name: {it}")));
}
