//! Values, their positions, and diagnostics.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::*;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Sample {
    name: Option<String>,
    count: Option<u8>,
    ratio: Option<f64>,
    is_on: Option<bool>,
    kind: Option<Kind>,
    list: Vec<String>,
    pairs: BTreeMap<String, i16>,
    inner: Option<Box<Sample>>,
    needs: Vec<Needs>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    One,
    Other,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Needs {
    what: String,
    much: u8,
}

fn good(text: &str) -> Sample {
    let parsed = parse(text);
    assert_eq!(parsed.diagnostics, [], "{text}");
    parsed.value
}

fn diagnostics(text: &str) -> Vec<String> {
    parse::<Sample>(text).diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn values_in_all_notations_are_read() {
    for text in ["", "\n# nothing\n", "---\n", "~", "{}", "\u{feff}# a mark\n"] {
        assert_eq!(good(text), Sample::default(), "{text:?}");
    }
    let sample = good(
        "name: 0x8001\ncount: 0x1F\nratio: 1e-9\nis-on: yes\nkind: other\nlist:\n- a b\n- 'null'\ninner:\n  \
         list: [1, \"x\\n\"]\n  name:\n",
    );
    assert_eq!(sample.name.as_deref(), Some("0x8001"), "a text as it is written");
    assert_eq!(
        (sample.count, sample.is_on, sample.kind),
        (Some(31), Some(true), Some(Kind::Other))
    );
    assert_eq!(sample.list, ["a b", "null"]);
    let inner = sample.inner.unwrap();
    assert_eq!((inner.list, inner.name), (vec!["1".to_owned(), "x\n".to_owned()], None));
    assert_eq!(good("list:\ninner:\npairs:\n"), Sample::default(), "nothing is no entries");
}

#[test]
fn values_have_positions_of_use() {
    let Parsed { value: sample, document, .. } =
        parse::<Sample>("pairs:\n  a: &x 7\n  b:   -3\n  c: *x\n  c.d[1]: 4\n");
    let positions: Vec<_> = sample
        .pairs
        .iter()
        .map(|(name, value)| {
            let at = document.diagnostic(&format!("pairs.{name}"), "").unwrap();
            (*value, at.line, at.column)
        })
        .collect();
    assert_eq!(positions, [(7, 2, 9), (-3, 3, 8), (7, 4, 6), (4, 5, 11)]);
}

#[test]
fn merge_keys_add_missing_keys() {
    let sample = good("inner: &a {name: x, count: 1}\nneeds: []\n<<: {ratio: 2}\n");
    assert_eq!(sample.ratio, Some(2.0));
    let text =
        "inner:\n  inner: &a {name: x, count: 1}\n  <<: [*a, {count: 2, ratio: 3}]\n  name: y\n";
    let inner = good(text).inner.unwrap();
    assert_eq!((inner.name.as_deref(), inner.count, inner.ratio), (Some("y"), Some(1), Some(3.0)));
    assert_eq!(
        diagnostics("<<: 5"),
        ["line 1, column 5: <<: must be a mapping, or a list of mappings"]
    );
    // A syntax error within a merge key is one error.
    let broken = diagnostics("needs: []\ninner:\n  <<: [b, c\n  name: 5s");
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(!broken[0].contains("<<: must be"), "{broken:?}");
}

#[test]
fn each_mistake_has_one_diagnostic_with_position() {
    let mut failures = Vec::new();
    for (text, says) in [
        ("count: 300", "line 1, column 8: count: \"300\" is not a whole number between 0 and 255"),
        ("count: x", "line 1, column 8: count: \"x\" is not a whole number"),
        ("count: [1]", "line 1, column 8: count: must be a single value, not a list"),
        ("ratio: much", "line 1, column 8: ratio: \"much\" is not a number"),
        ("is-on: maybe", "line 1, column 8: is-on: \"maybe\" is neither true nor false"),
        ("kind: on", "line 1, column 7: kind: \"on\" is not one of: one, other"),
        ("name: {a: b}", "line 1, column 7: name: must be a single value, not a mapping"),
        (
            "list: x",
            "line 1, column 7: list: must be a list ([a, b], or one line \"- a\" per entry), not a single",
        ),
        (
            "list: {a: b}",
            "line 1, column 7: list: must be a list ([a, b], or one line \"- a\" per entry), not a map",
        ),
        ("list: [a, {b: c}]", "line 1, column 11: list[1]: must be a single value"),
        ("list: [a, ~]", "line 1, column 11: list[1]: has no value"),
        (
            "inner: [a]",
            "line 1, column 8: inner: must be a mapping (one line \"key: value\" per key), not a list",
        ),
        ("[a]", "line 1, column 1: must be a mapping"),
        (
            "pairs: {a: 99999}",
            "line 1, column 12: pairs.a: \"99999\" is not a whole number between -32768",
        ),
        (
            "inner:\n  nmae: x",
            "line 2, column 3: inner.nmae: unknown key (did you mean \"name\"?); known: name",
        ),
        ("elephant: x", "line 1, column 1: elephant: unknown key; known: name, count"),
        ("needs: [{what: x}]", "line 1, column 9: needs[0]: the key \"much\" is missing"),
        (
            "needs: [{what: x, much: 256}]",
            "line 1, column 25: needs[0].much: \"256\" is not a whole number",
        ),
        ("name: a\nname: b", "line 2, column 1: name: the key is given twice (first in line 1)"),
        ("inner: {name: a, name: b}", "line 1, column 18: inner.name: the key is given twice"),
        ("? [a]\n: b", "line 1, column 3: a key must be a single value, not a list or mapping"),
        ("name: *x", "line 1, column 7: name: the alias (*) has no anchor (&) before it"),
        ("list: &a [*a]", "line 1, column 11: list[0]: the alias (*) is inside its own anchor (&)"),
        ("name: a\n---\nname: b", "line 2, column 1: a second document begins here (---)"),
        // The syntax.
        ("list: [a", "line 1, column 7: list: the bracket [ is not closed"),
        ("list: [a}", "the bracket [ is closed by }"),
        ("inner: {name: a", "the bracket { is not closed"),
        ("name: \"a", "the quote is not closed"),
        ("name: 'a' b", "there is text after the closing quote"),
        ("name: \"\\q\"", "in double quotes \\ begins an escape"),
        ("inner:\n\tname: a", "tabs are not allowed here"),
        ("inner:\n   name: a\n  count: 1", "line 3, column 3: "),
        ("name: a: b", "line 1, column 8: "),
        ("name: @a", "the character \"@\" is not allowed here: quote the text"),
        ("name: %a", "is not allowed here: quote the text"),
        (
            "name\ncount: 1",
            "line 2, column 6: a colon is not allowed here: quote text that contains one; or a colon is missing",
        ),
        ("na\0me: x", "is not allowed here"),
    ] {
        let lines = diagnostics(text);
        let is_plain = |one: &str| {
            let of_library = ["scanning", "parsing", "expected", "disallowed"];
            one.starts_with("line ")
                && !one.contains('\n')
                && !of_library.iter().any(|it| one.contains(it))
        };
        match &lines[..] {
            [one] if one.contains(says) && is_plain(one) => {}
            _ => failures.push(format!("{text:?}\n  says {lines:?}\n  not  {says:?}")),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn all_mistakes_are_reported_and_the_rest_is_read() {
    let text = "name: x\ncount: 999\ninner:\n  ratio: x\n  kind: z\n  nme: y\nneeds:\n- {what: a, much: b}\n- {}\n\
                - {what: a, much: 1}\nlist: 5\nlist: 6\n";
    let parsed = parse::<Sample>(text);
    let places: Vec<_> = parsed.diagnostics.iter().map(|it| (it.line, it.key.as_str())).collect();
    assert_eq!(
        places,
        [
            (2, "count"),
            (4, "inner.ratio"),
            (5, "inner.kind"),
            (6, "inner.nme"),
            (8, "needs[0].much"),
            (9, "needs[1]"),
            (11, "list"),
            (12, "list")
        ]
    );
    assert_eq!(parsed.value.name.as_deref(), Some("x"));
    assert_eq!(parsed.value.needs, [Needs { what: "a".into(), much: 1 }]);
    // The index of a later diagnostic counts the entries that were read.
    let later = parsed.document.diagnostic("needs[0].much", "is little").unwrap();
    assert_eq!(later.to_string(), "line 10, column 19: needs[2].much: is little");
    assert_eq!(parsed.document.diagnostic("inner.count", "x"), None);
}

#[test]
fn control_characters_are_escaped() {
    let lines = diagnostics("inner:\n  \"a\\nb\\e[2J\": x\n");
    assert!(lines[0].contains("inner.a\\nb\\u{1b}[2J: unknown key"), "{lines:?}");
}

#[test]
fn diagnostics_and_aliases_are_bounded() {
    let many = (0..5000).map(|n| format!("key{n}: x\n")).collect::<Vec<_>>().concat();
    let listed = diagnostics(&many);
    assert_eq!(listed.len(), MAX_DIAGNOSTICS + 1);
    let last = listed.last().unwrap();
    assert!(
        last.contains("only the first 100 errors are listed; there are at least 4900 more"),
        "{last}"
    );
    // Each level has ten times the one before: 10 to the power of 9 values.
    let level =
        |level: u32| format!("k{level}: &a{level} [{}]\n", format!("*a{}, ", level - 1).repeat(10));
    let bomb = "needs: &a0 []\n".to_owned() + &(1..10).map(level).collect::<Vec<_>>().concat();
    assert!(diagnostics(&bomb).iter().all(|line| line.contains("unknown key")));
    let deep = "list: ".to_owned() + &"[".repeat(100_000);
    assert_eq!(diagnostics(&deep).len(), 1);
}

/// How long this thread has had a processor: on a busy computer a test waits for one.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// 1 MiB, the most that a web config file may have. Unknown keys took 60 seconds, unoptimized.
#[test]
fn many_errors_take_a_time_in_proportion_to_the_file() {
    let line = |what: &str| -> String {
        (0..80_000).flat_map(|n| [what.to_owned(), n.to_string(), ": x\n".to_owned()]).collect()
    };
    let twice = line("key").replace('x', "1") + &line("key");
    let merged = format!("pairs: &a\n{}inner:\n  <<: *a\n", line("  k").replace('x', "1"));
    let wrong = "pairs:\n".to_owned() + &line("  k");
    let list = "needs:\n".to_owned() + &"- {what: a, much: b}\n".repeat(40_000);
    let many = format!("pairs: &a\n{}list:\n", line("  k")) + &"- {<<: *a}\n".repeat(20_000);
    for text in [line("key"), twice, merged, wrong, list, many] {
        let began = processor_time();
        let listed = diagnostics(&text);
        let took = processor_time().saturating_sub(began);
        println!("{took:?} for {} bytes: {:?}", text.len(), listed.last());
        assert!(!listed.is_empty() && listed.len() <= MAX_DIAGNOSTICS + 1);
        // Optimized, it takes a tenth of this time.
        assert!(took.as_secs() < 4, "{took:?}: {:?}", listed.last());
    }
}

#[test]
fn unknown_key_does_not_hide_a_missing_one() {
    let lines = diagnostics(
        "needs:\n- {what: a, colour: red}\n- {what: a, mucj: 1}\n- {what: a, much: x}\n",
    );
    let says = [
        "line 2, column 13: needs[0].colour: unknown key",
        "needs[0]: the key \"much\" is missing",
        // Each of these is one mistake.
        "needs[1].mucj: unknown key (did you mean \"much\"?)",
        "needs[2].much: \"x\" is not a whole number",
    ];
    assert_eq!(lines.len(), says.len(), "{lines:?}");
    for said in says {
        assert!(lines.iter().any(|line| line.contains(said)), "{said}: {lines:?}");
    }
}
