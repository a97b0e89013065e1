//! What pages ask the history's file: in a seat of its own, and without much patience.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::history::model::Window;
use crate::history::source::AskError;
use crate::history::{Reader, Source};
use crate::web::archive::Archive;

use super::address;

/// How long a page waits for others: its reader does, too.
const PATIENCE: Duration = Duration::from_secs(3);

/// The windows that can be chosen: what an address calls them, and how long they are.
pub const WINDOWS: [(&str, Duration); 5] = [
    ("1h", Duration::from_secs(3_600)),
    ("6h", Duration::from_secs(6 * 3_600)),
    ("24h", Duration::from_secs(24 * 3_600)),
    ("7d", Duration::from_secs(7 * 24 * 3_600)),
    ("30d", Duration::from_secs(30 * 24 * 3_600)),
];

/// A window that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What an address calls it.
    pub name: &'static str,
    length: Duration,
}

impl Choice {
    /// The one of this name, or else this usual one.
    pub fn of(name: Option<&str>, usual: &'static str) -> Self {
        let called = |called: &str| WINDOWS.iter().find(|(name, _)| *name == called);
        let (name, length) = name.and_then(called).or_else(|| called(usual)).unwrap_or(&WINDOWS[0]);
        Choice { name, length: *length }
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
    // Who asked may be gone before the answer is there: the seat is taken until then all the same.
    let answer = move || {
        let _seat = seat;
        question(&Reader::open(&file)?)
    };
    match tokio::task::spawn_blocking(answer).await {
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
pub fn windows(chosen: Choice, most: &str, path: &str, pairs: &[(&str, &str)]) -> Markup {
    let last = WINDOWS.iter().position(|(name, _)| *name == most).unwrap_or(WINDOWS.len() - 1);
    html! {
        nav .windows aria-label="Window" { ul {
            @for (name, _) in &WINDOWS[..=last] { li {
                a href=(address::with(path, &[pairs, &[("window", name)]].concat()))
                    aria-current=[(*name == chosen.name).then_some("true")] { (name) }
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
