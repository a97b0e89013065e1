//! What pages ask the history's file: in a seat of its own, and without much patience.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::api::archive;
use crate::api::archive::Archive;
use fabric_history::model::Window;
use fabric_history::source::AskError;
use fabric_history::{Reader, Source};

use super::address;
use super::ask::Asked;

/// How long a page waits for others: its reader does, too.
const PATIENCE: Duration = Duration::from_secs(3);

/// A window that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What an address calls it.
    pub name: &'static str,
    length: Duration,
}

impl Choice {
    pub const HOURS_6: Choice = Choice::hours("6h", 6);
    pub const DAY: Choice = Choice::hours("24h", 24);
    pub const WEEK: Choice = Choice::hours("7d", 7 * 24);
    pub const MONTH: Choice = Choice::hours("30d", 30 * 24);
    /// All of them.
    pub const ALL: [Choice; 5] =
        [Choice::hours("1h", 1), Choice::HOURS_6, Choice::DAY, Choice::WEEK, Choice::MONTH];

    const fn hours(name: &'static str, hours: u64) -> Self {
        Choice { name, length: Duration::from_secs(hours * 3_600) }
    }

    /// The one that an address names, or this one if it names none.
    pub fn asked(asked: &Asked, usual: Choice) -> Result<Self, String> {
        let chosen = asked.read("window", |name| {
            let names = || Choice::ALL.map(|choice| choice.name).join(", ");
            let chosen = Choice::ALL.into_iter().find(|choice| choice.name == name);
            chosen.ok_or_else(|| format!("must be one of: {}", names()))
        })?;
        Ok(chosen.unwrap_or(usual))
    }

    /// The window until now. A simulated clock may be ahead of ours.
    pub fn until_now(self, source: &dyn Source) -> Result<Window, AskError> {
        let now = SystemTime::now();
        let to = source.span()?.last.map_or(now, |last| last.max(now));
        Ok(Window { from: to.checked_sub(self.length).unwrap_or(SystemTime::UNIX_EPOCH), to })
    }
}

/// What the history has to say.
#[derive(Debug)]
pub enum Past<T> {
    /// This.
    Told(T),
    /// Nothing: nothing is recorded.
    Unrecorded,
    /// Nothing now: why, in a sentence.
    Silent(String),
}

/// Asks the history.
pub async fn ask<T: Send + 'static>(
    archive: &Archive,
    question: impl FnOnce(&Reader) -> Result<T, AskError> + Send + 'static,
) -> Past<T> {
    let Some(file) = archive.file().cloned() else { return Past::Unrecorded };
    let seat = tokio::time::timeout(PATIENCE, archive.seats.clone().acquire_owned()).await;
    let Ok(Ok(seat)) = seat else {
        return Past::Silent("Too many ask the history at once. Load this page again.".into());
    };
    let answer = archive::answer(file, move |reader| {
        let _seat = seat;
        question(reader)
    });
    match answer.await {
        Ok(Ok(told)) => Past::Told(told),
        Ok(Err(error)) => Past::Silent(format!("The history cannot be read: {error}.")),
        Err(_) => {
            Past::Silent("The history cannot be told. The exporter's log may say why.".into())
        }
    }
}

/// Asks the history what the page is as good as whole without, and waits for no longer than this.
pub async fn soon<T: Send + 'static>(
    limit: Duration,
    archive: &Archive,
    question: impl FnOnce(&Reader) -> Result<T, AskError> + Send + 'static,
) -> Past<T> {
    let busy = |_| Past::Silent("The recorder is busy: it is left alone for now.".into());
    tokio::time::timeout(limit, ask(archive, question)).await.unwrap_or_else(busy)
}

impl<T> Past<T> {
    /// What is told, or else why nothing is.
    pub fn told(&self) -> Result<&T, Markup> {
        match self {
            Past::Told(told) => Ok(told),
            Past::Silent(why) => Err(html! { p .quiet { (why) } }),
            Past::Unrecorded => Err(html! {
                p .quiet {
                    "Nothing is recorded here. Started with " code { "--history.file=FILE" }
                    ", the exporter keeps each sweep and each event, and this page shows their course."
                }
            }),
        }
    }
}

/// The windows to choose from, for a page at this path.
pub fn windows(chosen: Choice, most: Choice, path: &str, pairs: &[(&str, &str)]) -> Markup {
    let offered = Choice::ALL.into_iter().filter(|choice| choice.length <= most.length);
    html! {
        nav .windows aria-label="Window" { ul {
            @for Choice { name, .. } in offered { li {
                a href=(address::with(path, &[pairs, &[("window", name)]].concat()))
                    aria-current=[(name == chosen.name).then_some("true")] { (name) }
            } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_busy_is_not_waited_for() {
        let archive = Archive::new(Some(std::path::Path::new("/nowhere/history.db").into()));
        let all = u32::try_from(archive.seats.available_permits()).unwrap();
        let taken = archive.seats.acquire_many(all).await.unwrap();
        let limit = Duration::from_millis(10);
        let past = soon(limit, &archive, |_| Ok(())).await;
        assert!(matches!(past, Past::Silent(why) if why.contains("The recorder is busy")));
        drop(taken);
        let past = soon(Duration::from_secs(60), &archive, |_| Ok(())).await;
        assert!(matches!(past, Past::Silent(why) if why.contains("/nowhere/history.db")));
        let past = soon(limit, &Archive::new(None), |_| Ok(())).await;
        assert!(matches!(past, Past::Unrecorded));
    }
}
