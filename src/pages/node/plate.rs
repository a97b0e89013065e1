//! A node's ports as they are on its front: two rows, odd numbers above even ones.

use maud::{Markup, html};

use crate::api::model::node::NodeDetail;
use crate::api::model::port::Port;
use crate::pages::{address, words};
use ib_fabric::topology::LinkId;

/// How many ports stand together: what fits beside each other on a narrow screen, and is a usual
/// cage's half. A director's leaf has several such banks.
const BANK: usize = 32;

/// How a port looks: what it is called, and the sign that stands for it where colours do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Ok,
    Watch,
    Bad,
    Unknown,
    /// There was a link, and there is none now.
    Down,
    /// Somebody switched it off.
    Off,
    /// It never had a cable, as far as is known.
    Empty,
}

/// What there is to know of a look: its class, its sign, and what it means.
const LOOKS: [(Look, &str, &str, &str); 7] = [
    (Look::Ok, "ok", "✓", "ok"),
    (Look::Watch, "watch", "!", "watch"),
    (Look::Bad, "bad", "✕", "bad"),
    (Look::Unknown, "unknown", "?", "unknown"),
    (Look::Down, "down", "↓", "no link now"),
    (Look::Off, "off", "∅", "switched off"),
    (Look::Empty, "empty", "–", "no cable"),
];

impl Look {
    /// How a port looks.
    pub(super) fn of(port: &Port) -> Look {
        let is_down = port.physical_state.as_deref().is_some_and(|state| state != "LinkUp");
        if port.physical_state.as_deref() == Some("Disabled") {
            return Look::Off;
        }
        match (port.verdict.as_deref(), is_down) {
            (None, _) => Look::Empty,
            (Some(_), true) => Look::Down,
            (Some("ok"), _) => Look::Ok,
            (Some("watch"), _) => Look::Watch,
            (Some("bad"), _) => Look::Bad,
            (Some(_), _) => Look::Unknown,
        }
    }

    fn row(self) -> (&'static str, &'static str, &'static str) {
        let row = LOOKS.iter().find(|(look, ..)| *look == self);
        row.map_or(("unknown", "?", "unknown"), |(_, class, sign, means)| (class, sign, means))
    }
}

/// How a port in a congestion is marked: its class, its sign, and what it means. Its link may be sound, so
/// this stands beside its look.
const CONGESTION: [(&str, &str, &str); 2] = [
    ("root", "◆", "congestion root"),
    ("victim", "◇", "congestion victim: waits for a root elsewhere"),
];

/// The mark of a port whose cable is congested, at either end: so a plate has as many marks as the topology
/// counts congested cables.
fn congested(port: &Port) -> Option<(&'static str, &'static str, &'static str)> {
    let roles = [port.congestion.as_ref().map(|part| &*part.role), words::far_congestion(port)];
    let role =
        if roles.contains(&Some("root")) { "root" } else { roles.into_iter().flatten().next()? };
    CONGESTION.into_iter().find(|(class, ..)| *class == role)
}

/// The plate, and what its signs mean.
pub(super) fn section(detail: &NodeDetail) -> Markup {
    let shown: Vec<&Port> = detail.ports.iter().filter(|port| port.name.port > 0).collect();
    let looks: Vec<Look> = shown.iter().map(|port| Look::of(port)).collect();
    html! {
        div .plate {
            @for bank in shown.chunks(BANK) {
                ol { @for port in bank { li { (socket(detail, port)) } } }
            }
        }
        ul .legend {
            @for (look, class, sign, means) in LOOKS {
                @let count = looks.iter().filter(|has| **has == look).count();
                @if count > 0 { li { span class={ "sign " (class) } aria-hidden="true" { (sign) } " " (count) " " (means) } }
            }
            @for mark in CONGESTION {
                @let count = shown.iter().filter(|port| congested(port) == Some(mark)).count();
                @if count > 0 { li { span .congested aria-hidden="true" { (mark.1) } " " (count) " " (mark.2) } }
            }
        }
    }
}

fn socket(detail: &NodeDetail, port: &Port) -> Markup {
    let (class, sign, _) = Look::of(port).row();
    let label = label(port);
    // What a link that is down comes to is its colour; that it is down, its sign.
    let verdict = port.verdict.as_deref().unwrap_or_default();
    let link = port.link.as_deref().and_then(|link| link.parse::<LinkId>().ok());
    let to = match link {
        Some(link) => address::link(&detail.fabric, link),
        None => format!("#port-{}", port.name.port),
    };
    html! {
        a class={ "socket " (class) " v-" (verdict) } href=(to) title=(label) aria-label=(label) {
            span { (port.name.port) }
            b { (sign) @if let Some((_, mark, _)) = congested(port) { span .congested { (mark) } } }
        }
    }
}

/// A port in a sentence: `port 7: to host-3 port 1, bad: bit errors; congestion root, waits 32 % of the time`.
pub(super) fn label(port: &Port) -> String {
    let number = port.name.port;
    let (_, _, means) = Look::of(port).row();
    let Some(peer) = &port.peer else { return format!("port {number}: {means}") };
    let reasons: Vec<String> = port.reasons.iter().map(|reason| words::plain(reason)).collect();
    let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    let verdict = port.verdict.as_deref().unwrap_or("unknown");
    let now = match Look::of(port) {
        Look::Down | Look::Off => format!("{means}, "),
        _ => String::new(),
    };
    let mut parts = vec![format!("port {number}: to {}, {now}{verdict}{why}", peer.name.label())];
    if let Some(part) = &port.congestion {
        let waits = port.wait_ratio.map(|it| format!(", waits {} of the time", words::share(it)));
        parts.push(format!("congestion {}{}", part.role, waits.unwrap_or_default()));
    }
    if let Some(role) = words::far_congestion(port) {
        parts.push(format!("the other end is a congestion {role}"));
    }
    if let Some(discards) = port.discards.filter(|discards| *discards > 0) {
        parts.push(format!("{} packets discarded", words::count(discards)));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::model::port::{Congestion, Peer, PortName};

    fn port(verdict: Option<&'static str>, physical: Option<&'static str>) -> Port {
        let name = PortName { node: "host-3".into(), port: 1, ..PortName::default() };
        Port {
            name: PortName { port: 7, ..PortName::default() },
            verdict: verdict.map(Into::into),
            physical_state: physical.map(Into::into),
            peer: verdict.map(|_| Peer { name, connected: true }),
            ..Port::default()
        }
    }

    #[test]
    fn each_state_has_a_look_and_a_sentence() {
        for (verdict, physical, look, told) in [
            (Some("ok"), Some("LinkUp"), Look::Ok, "port 7: to host-3 port 1, ok"),
            (Some("watch"), Some("LinkUp"), Look::Watch, "port 7: to host-3 port 1, watch"),
            (Some("bad"), Some("LinkUp"), Look::Bad, "port 7: to host-3 port 1, bad"),
            (
                Some("bad"),
                Some("Polling"),
                Look::Down,
                "port 7: to host-3 port 1, no link now, bad",
            ),
            (Some("unknown"), None, Look::Unknown, "port 7: to host-3 port 1, unknown"),
            (Some("a newer word"), None, Look::Unknown, "port 7: to host-3 port 1, a newer word"),
            (None, Some("Polling"), Look::Empty, "port 7: no cable"),
            (None, Some("Disabled"), Look::Off, "port 7: switched off"),
            (None, None, Look::Empty, "port 7: no cable"),
        ] {
            let port = port(verdict, physical);
            assert_eq!((Look::of(&port), &*label(&port)), (look, told));
        }
        let why = Port { reasons: vec!["bit_errors".into()], ..port(Some("bad"), Some("LinkUp")) };
        assert_eq!(label(&why), "port 7: to host-3 port 1, bad: bit errors");
    }

    #[test]
    fn congestion_and_discards_show_at_a_port_whose_cable_is_ok() {
        let part = |role: &'static str| Congestion { role: role.into(), ..Congestion::default() };
        let root = Port {
            congestion: Some(part("root")),
            wait_ratio: Some(0.32),
            discards: Some(217_838),
            ..port(Some("ok"), Some("LinkUp"))
        };
        let text = "port 7: to host-3 port 1, ok; congestion root, waits 32 % of the time; 217,838 packets discarded";
        assert_eq!(label(&root), text);
        let victim = Port { congestion: Some(part("victim")), ..port(Some("ok"), Some("LinkUp")) };
        let detail =
            NodeDetail { ports: vec![root, victim.clone(), victim], ..NodeDetail::default() };
        let page = section(&detail).into_string();
        for wanted in [
            "◆</span> 1 congestion root",
            "◇</span> 2 congestion victim",
            "✓<span class=\"congested\">◆</span>",
        ] {
            assert!(page.contains(wanted), "{wanted}: {page}");
        }
    }

    #[test]
    fn no_two_looks_have_the_same_sign() {
        for (look, class, sign, means) in LOOKS {
            let like = LOOKS
                .iter()
                .filter(|other| other.1 == class || other.2 == sign || other.3 == means);
            assert_eq!(like.count(), 1, "{look:?}");
        }
    }

    #[test]
    fn ports_stand_in_banks_and_a_name_stays_text() {
        for (ports, banks) in [(1, 1), (2, 1), (32, 1), (33, 2), (144, 5), (254, 8)] {
            let one = |number: u8| {
                let mut port = port(Some("ok"), Some("LinkUp"));
                port.name.port = number;
                port.peer.as_mut().unwrap().name.node = "\"><script>".into();
                port
            };
            let detail =
                NodeDetail { ports: (1..=ports).map(one).collect(), ..NodeDetail::default() };
            let page = section(&detail).into_string();
            assert_eq!(page.matches("<ol>").count(), banks);
            assert_eq!(page.matches("class=\"socket ok v-ok\"").count(), usize::from(ports));
            assert!(!page.contains("<script>"));
        }
    }
}
