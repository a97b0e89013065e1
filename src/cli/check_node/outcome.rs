//! What a check found, and how it is told: one line of at most 80 bytes, JSON, and an exit code.

use serde::{Serialize, Serializer};

use display_text::plural;

use crate::cli::terminal::printable;

/// node-problem-detector cuts messages after so many bytes (`max_output_length`).
const MAX_LINE: usize = 80;

/// Whether the fabric is fine for a host, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    Fine,
    /// Fine, but a cable is degraded: Nagios has a code for it.
    Degraded,
    /// No reason to drain.
    Unknown,
    Bad,
}

impl Status {
    /// The word in the line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Status::Fine => "fine",
            Status::Degraded => "degraded",
            Status::Unknown => "unknown",
            Status::Bad => "bad",
        }
    }

    /// The exit code: 0 fine, 1 bad, 2 unknown, or as Nagios has them.
    pub fn exit_code(self, nagios: bool) -> u8 {
        match (self, nagios) {
            (Status::Fine, _) | (Status::Degraded, false) => 0,
            (Status::Degraded, true) | (Status::Bad, false) => 1,
            (Status::Unknown, false) | (Status::Bad, true) => 2,
            (Status::Unknown, true) => 3,
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

/// A sentence about a host, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    pub status: Status,
    pub text: String,
}

/// What was found about a host, in the order in which it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCheck {
    pub host: String,
    pub remarks: Vec<Remark>,
}

impl HostCheck {
    pub fn new(host: String) -> Self {
        HostCheck { host, remarks: Vec::new() }
    }

    fn add(&mut self, status: Status, text: impl Into<String>) {
        self.remarks.push(Remark { status, text: printable(&text.into()) });
    }

    /// Something is as it should be, or of no consequence for the host.
    pub fn fine(&mut self, text: impl Into<String>) {
        self.add(Status::Fine, text);
    }

    pub fn degraded(&mut self, text: impl Into<String>) {
        self.add(Status::Degraded, text);
    }

    pub fn unknown(&mut self, text: impl Into<String>) {
        self.add(Status::Unknown, text);
    }

    pub fn bad(&mut self, text: impl Into<String>) {
        self.add(Status::Bad, text);
    }

    /// The worst of all remarks; unknown without any.
    pub fn status(&self) -> Status {
        self.remarks.iter().map(|remark| remark.status).max().unwrap_or(Status::Unknown)
    }

    /// The remarks that make its status, joined.
    fn text(&self) -> String {
        let status = self.status();
        let worst = self.remarks.iter().filter(|remark| remark.status == status);
        worst.map(|remark| &*remark.text).collect::<Vec<_>>().join("; ")
    }
}

impl Serialize for HostCheck {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Model<'a> {
            host: &'a str,
            status: Status,
            remarks: &'a [Remark],
        }
        Model { host: &self.host, status: self.status(), remarks: &self.remarks }.serialize(to)
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub hosts: Vec<HostCheck>,
    /// Why nothing was checked.
    pub problem: Option<String>,
}

impl Outcome {
    pub fn unknown(problem: String) -> Self {
        Outcome { hosts: Vec::new(), problem: Some(problem) }
    }

    pub fn status(&self) -> Status {
        self.hosts.iter().map(HostCheck::status).max().unwrap_or(Status::Unknown)
    }

    /// The line: `BAD gpu17: cable leaf-0-1 port 9 – gpu17 port 1: symbol BER…`.
    pub fn line(&self) -> String {
        let status = self.status();
        let word = status.word().to_uppercase();
        let text = match (&self.problem, &self.hosts[..]) {
            (Some(problem), _) => problem.clone(),
            (None, [one]) => format!("{}: {}", one.host, one.text()),
            (None, hosts) => {
                let of: Vec<&HostCheck> =
                    hosts.iter().filter(|host| host.status() == status).collect();
                let names = hostlist::fold(of.iter().map(|host| &*host.host));
                let first = of.first().map(|host| host.text()).unwrap_or_default();
                format!("{} of {}: {names}: {first}", of.len(), plural(hosts.len(), "host"))
            }
        };
        shortened(&printable(&format!("{word} {text}")))
    }
}

/// The text in at most [`MAX_LINE`] bytes and one line.
fn shortened(text: &str) -> String {
    const MORE: &str = "...";
    if text.len() <= MAX_LINE {
        return text.to_owned();
    }
    let mut end = MAX_LINE - MORE.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MORE}", &text[..end])
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Model<'a> {
            status: Status,
            line: String,
            problem: Option<&'a str>,
            hosts: &'a [HostCheck],
        }
        let (status, line) = (self.status(), self.line());
        Model { status, line, problem: self.problem.as_deref(), hosts: &self.hosts }.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, add: impl FnOnce(&mut HostCheck)) -> HostCheck {
        let mut check = HostCheck::new(name.to_owned());
        add(&mut check);
        check
    }

    #[test]
    fn worst_remark_decides() {
        let all = host("a", |it| {
            it.fine("8 ports Active");
            it.degraded("a cable is degraded");
        });
        assert_eq!(all.status(), Status::Degraded);
        let one = Outcome { hosts: vec![all.clone()], problem: None };
        assert_eq!(one.line(), "DEGRADED a: a cable is degraded");
        let unknown = host("b", |it| it.unknown("not in the fabric"));
        let two = Outcome { hosts: vec![all, unknown], problem: None };
        assert_eq!(two.line(), "UNKNOWN 1 of 2 hosts: b: not in the fabric");
        assert_eq!(host("c", |_| ()).status(), Status::Unknown);
    }

    #[test]
    fn exit_codes_are_those_of_the_caller() {
        let codes = |nagios| {
            [Status::Fine, Status::Degraded, Status::Bad, Status::Unknown]
                .map(|status| status.exit_code(nagios))
        };
        assert_eq!(codes(false), [0, 0, 1, 2]);
        assert_eq!(codes(true), [0, 1, 2, 3]);
    }

    #[test]
    fn line_has_at_most_80_bytes() {
        let long = host("gpu17", |it| it.bad("ä".repeat(100)));
        let line = Outcome { hosts: vec![long], problem: None }.line();
        assert!(line.len() <= 80 && line.ends_with("..."), "{line}");
        let lines = host("gpu17", |it| it.bad("a\nb"));
        assert!(!Outcome { hosts: vec![lines], problem: None }.line().contains('\n'));
    }
}
