//! Questions about routes, which only the monitor of a fabric can answer: it has the device, the keys and the limit of
//! requests. Whoever asks waits for the answer, but not for ever. Few questions wait at a time.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use ib_fabric::topology::LinkId;
use thiserror::Error;
use tokio::sync::oneshot;

use crate::filter::{Fabrics, check_fabric, selected};
use crate::model::{CrossedLinks, HostsOfLink, Routes};

/// How many questions wait for a monitor. Each takes up to some seconds, and whoever asks waits no longer than
/// [`ANSWER_TIMEOUT`]: more would be answered too late.
const MAX_WAITING: usize = 16;

/// How long an answer is waited for: a sweep and the reading of registers may come first.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no answer, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unanswered {
    /// A node, port or link does not exist, or no fabric has the name.
    #[error("{0}")]
    NotFound(String),
    /// The question is about too many routes.
    #[error("{0}")]
    TooMany(String),
    /// Tables are never read.
    #[error(
        "fabric {0}: forwarding tables are not read, because --fabric.forwarding-smps-per-minute is 0: set it to 1 or \
         more"
    )]
    Disabled(String),
    /// Another program collects its data.
    #[error(
        "fabric {0}: routes are not available from this source: they are in the forwarding tables of switches, and no MADs \
         are sent with --fabric.from"
    )]
    NotCollected(String),
    /// No fabric is monitored.
    #[error("this exporter sweeps no fabric: ask one that does")]
    NoFabric,
    /// There was no sweep yet.
    #[error("fabric {0}: the first sweep has not ended: try again in a few seconds")]
    NotSwept(String),
    /// Too many questions wait.
    #[error("fabric {0}: too many questions about routes wait: try again in a minute")]
    Busy(String),
    /// The monitor did not answer in time.
    #[error(
        "fabric {0}: no answer within 30 s, since a sweep or the reading of registers takes so long: try again, and look \
         at fabric_exporter_sweep_duration_seconds"
    )]
    Late(String),
    /// The device is lost, or the monitor ended.
    #[error("fabric {0}: the device is lost, or the exporter stops: see its log, and try again")]
    Gone(String),
}

/// Where the answer to a question goes.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<Result<T, Unanswered>>);

impl<T> Reply<T> {
    /// Answers. Whoever asked may have gone meanwhile.
    pub fn send(self, answer: Result<T, Unanswered>) {
        let _ = self.0.send(answer);
    }
}

/// A question to the monitor of a fabric. Names are what people write: names, GUIDs, LIDs, ports, hosts.
#[derive(Debug)]
pub enum Question {
    /// The routes from one node to another.
    #[expect(missing_docs, reason = "the names say it")]
    Routes { from: String, to: String, reply: Reply<Routes> },
    /// The hosts whose packets cross a link.
    #[expect(missing_docs, reason = "the names say it")]
    Hosts { link: LinkId, reply: Reply<HostsOfLink> },
    /// The links that packets of a host cross.
    #[expect(missing_docs, reason = "the names say it")]
    Crossed { host: String, reply: Reply<CrossedLinks> },
}

impl Question {
    /// Whether nobody waits for the answer any more.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Question::Routes { reply, .. } => reply.0.is_closed(),
            Question::Hosts { reply, .. } => reply.0.is_closed(),
            Question::Crossed { reply, .. } => reply.0.is_closed(),
        }
    }

    /// Answers that there is no answer.
    pub fn refuse(self, why: Unanswered) {
        match self {
            Question::Routes { reply, .. } => reply.send(Err(why)),
            Question::Hosts { reply, .. } => reply.send(Err(why)),
            Question::Crossed { reply, .. } => reply.send(Err(why)),
        }
    }
}

/// The channel to one monitor.
pub fn channel() -> (SyncSender<Question>, Receiver<Question>) {
    sync_channel(MAX_WAITING)
}

/// Where questions are asked: it passes each to the monitor of its fabric.
#[derive(Clone, Debug, Default)]
pub struct RouteDesk(Arc<Vec<(String, SyncSender<Question>)>>);

impl RouteDesk {
    /// A desk of these fabrics.
    pub fn new(monitors: Vec<(String, SyncSender<Question>)>) -> Self {
        RouteDesk(Arc::new(monitors))
    }

    /// Asks for the routes from one node to another, in the first of the selected fabrics that has both.
    pub async fn routes(
        &self,
        fabrics: &Fabrics,
        fabric: Option<&str>,
        [from, to]: [&str; 2],
    ) -> Result<Routes, Unanswered> {
        let (from, to) = (from.to_owned(), to.to_owned());
        let question = |reply| Question::Routes { from: from.clone(), to: to.clone(), reply };
        self.ask(fabrics, fabric, question).await
    }

    /// Asks for the hosts whose packets cross a link, in the first of the selected fabrics that has it.
    pub async fn hosts(
        &self,
        fabrics: &Fabrics,
        fabric: Option<&str>,
        link: LinkId,
    ) -> Result<HostsOfLink, Unanswered> {
        self.ask(fabrics, fabric, |reply| Question::Hosts { link, reply }).await
    }

    /// Asks for the links that packets of a host cross, in the first of the selected fabrics that has it.
    pub async fn crossed(
        &self,
        fabrics: &Fabrics,
        fabric: Option<&str>,
        host: &str,
    ) -> Result<CrossedLinks, Unanswered> {
        let question = |reply| Question::Crossed { host: host.to_owned(), reply };
        self.ask(fabrics, fabric, question).await
    }

    async fn ask<T>(
        &self,
        fabrics: &Fabrics,
        fabric: Option<&str>,
        question: impl Fn(Reply<T>) -> Question,
    ) -> Result<T, Unanswered> {
        if fabrics.is_empty() {
            return Err(Unanswered::NoFabric);
        }
        check_fabric(fabrics, fabric)
            .map_err(|problem| Unanswered::NotFound(format!("fabric: {problem}")))?;
        let mut problems = Vec::new();
        for observation in selected(fabrics, fabric) {
            let name = &observation.fabric;
            let answer = if observation.snapshot.is_none() {
                Err(Unanswered::NotSwept(name.clone()))
            } else if observation.source.is_some() {
                Err(Unanswered::NotCollected(name.clone()))
            } else {
                self.ask_one(name, &question).await
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(problem) => problems.push(problem),
            }
        }
        // What is not in one fabric may be in another one that could not answer.
        problems.sort_by_key(|problem| matches!(problem, Unanswered::NotFound(_)));
        Err(problems.into_iter().next().unwrap_or(Unanswered::NoFabric))
    }

    async fn ask_one<T>(
        &self,
        fabric: &str,
        question: impl Fn(Reply<T>) -> Question,
    ) -> Result<T, Unanswered> {
        let gone = || Unanswered::Gone(fabric.to_owned());
        let monitor = self.0.iter().find(|(name, _)| name == fabric);
        let (_, monitor) = monitor.ok_or_else(gone)?;
        let (sender, answer) = oneshot::channel();
        monitor.try_send(question(Reply(sender))).map_err(|error| match error {
            TrySendError::Full(_) => Unanswered::Busy(fabric.to_owned()),
            TrySendError::Disconnected(_) => gone(),
        })?;
        match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            // The question was dropped.
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(Unanswered::Late(fabric.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::Observation;
    use ib_health::testing::snapshot;

    fn swept(names: &[&str]) -> Vec<Arc<Observation>> {
        let observation = |name: &&str| {
            let snapshot = Some(snapshot().into());
            Arc::new(Observation { fabric: (*name).into(), snapshot, ..Observation::default() })
        };
        names.iter().map(observation).collect()
    }

    const ENDS: [&str; 2] = ["a", "b"];

    #[tokio::test]
    async fn question_without_a_sweep_a_fabric_or_a_monitor_is_refused_at_once() {
        let desk = RouteDesk::default();
        assert_eq!(desk.routes(&[], None, ENDS).await, Err(Unanswered::NoFabric));
        let unswept = [Arc::new(Observation { fabric: "f".into(), ..Observation::default() })];
        let not_swept = Unanswered::NotSwept("f".into());
        assert_eq!(desk.routes(&unswept, None, ENDS).await, Err(not_swept));
        let unknown = desk.routes(&unswept, Some("g"), ENDS).await.unwrap_err();
        assert_eq!(unknown.to_string(), "fabric: unknown fabric \"g\"; known: f");
        let gone = desk.crossed(&swept(&["f"]), None, "a").await;
        assert_eq!(gone, Err(Unanswered::Gone("f".into())));
    }

    #[tokio::test(start_paused = true)]
    async fn monitor_that_does_not_answer_is_not_waited_for_for_ever() {
        let (sender, questions) = channel();
        let desk = RouteDesk::new(vec![("f".into(), sender)]);
        let fabrics = swept(&["f"]);
        let late = desk.routes(&fabrics, None, ENDS).await;
        assert_eq!(late, Err(Unanswered::Late("f".into())));
        // The question is still there, and nobody waits.
        assert!(questions.try_recv().unwrap().is_abandoned());
        let link = "0x1:1-0x2:1".parse().unwrap();
        for _ in 0..MAX_WAITING {
            let asked = desk.hosts(&fabrics, None, link);
            assert_eq!(asked.await, Err(Unanswered::Late("f".into())));
        }
        let one_more = desk.hosts(&fabrics, None, link).await;
        assert_eq!(one_more, Err(Unanswered::Busy("f".into())));
        drop(questions);
        let ended = desk.hosts(&fabrics, None, link).await;
        assert_eq!(ended, Err(Unanswered::Gone("f".into())));
    }

    #[tokio::test]
    async fn next_fabric_is_asked_where_one_does_not_have_it() {
        let (channels, monitors): (Vec<_>, Vec<_>) = ["f", "g"]
            .into_iter()
            .map(|name| {
                let (sender, questions) = channel();
                let answer = move || {
                    while let Ok(Question::Crossed { reply, .. }) = questions.recv() {
                        let found = CrossedLinks { fabric: name.into(), ..CrossedLinks::default() };
                        let none = Unanswered::NotFound(format!("not in {name}"));
                        reply.send(if name == "g" { Ok(found) } else { Err(none) });
                    }
                };
                ((name.to_owned(), sender), std::thread::spawn(answer))
            })
            .unzip();
        let desk = RouteDesk::new(channels);
        let fabrics = swept(&["f", "g"]);
        assert_eq!(desk.crossed(&fabrics, None, "a").await.unwrap().fabric, "g");
        let of_f = desk.crossed(&fabrics, Some("f"), "a").await;
        assert_eq!(of_f, Err(Unanswered::NotFound("not in f".into())));
        drop(desk);
        for monitor in monitors {
            monitor.join().unwrap();
        }
    }
}
