//! The JSON models of the API, used by the server and by clients such as `links --url`. Their doc comments are the
//! descriptions in openapi.json.

mod link;
pub mod node;
pub mod overview;
pub mod port;
pub mod topology;

use std::borrow::Cow;

use ib_health::Verdict;
use serde::{Deserialize, Serialize};

pub use link::*;

/// A word of a small vocabulary. The writer need not copy it.
pub type Label = Cow<'static, str>;

/// How many cables have which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the verdicts say it")]
pub struct Verdicts {
    pub ok: usize,
    pub unknown: usize,
    pub watch: usize,
    pub bad: usize,
}

impl Verdicts {
    /// Counts one more link.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Ok => &mut self.ok,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Watch => &mut self.watch,
            Verdict::Bad => &mut self.bad,
        } += 1;
    }

    /// The count of each verdict, the worst first.
    pub fn worst_first(&self) -> [(Verdict, usize); 4] {
        [
            (Verdict::Bad, self.bad),
            (Verdict::Watch, self.watch),
            (Verdict::Unknown, self.unknown),
            (Verdict::Ok, self.ok),
        ]
    }

    /// The count of all links.
    pub fn count(&self) -> usize {
        self.ok + self.unknown + self.watch + self.bad
    }

    /// The worst verdict; `None` without links.
    pub fn worst(&self) -> Option<Verdict> {
        let mut worst_first = self.worst_first().into_iter();
        worst_first.find(|(_, count)| *count > 0).map(|(verdict, _)| verdict)
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Verdicts) -> Verdicts {
        Verdicts {
            ok: self.ok + other.ok,
            unknown: self.unknown + other.unknown,
            watch: self.watch + other.watch,
            bad: self.bad + other.bad,
        }
    }
}

/// The verdict with this label.
pub fn verdict_from(label: &str) -> Option<Verdict> {
    Verdict::ALL.into_iter().find(|verdict| verdict.label() == label)
}

/// What goes by a name, a GUID or a LID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Search {
    /// What was searched for.
    pub sought: String,
    /// How much was found; no more than the best hundred are told.
    pub found: usize,
    /// What was found, the best first.
    pub hits: Vec<Hit>,
}

/// Something that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hit {
    /// `node`, `port`, `link` or `device`.
    pub kind: Label,
    /// The fabric that it is in; of a device, that of its node, if that is known.
    pub fabric: String,
    /// What people call it.
    pub name: String,
    /// Its GUID, or a cable's id.
    pub id: String,
    /// What of it was found: `name`, `guid`, `port_guid`, `lid`, `link`, `port`.
    pub by: Label,
    /// How well that fits: `exact`, `prefix` or `substring`.
    pub fits: Label,
    /// The address of its page.
    pub page: String,
}
