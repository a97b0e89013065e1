//! A site that was watched by the monitor, and what is wrong with what it said.

use std::fmt;

use ib_health::Verdict;

use super::findings::Findings;
use super::size::{Planted, Size};
use super::story::Site;
use crate::Simulated;

/// One screen of findings is the most that a person reads.
pub const MOST_FINDINGS: usize = 20;

/// What the program said about a site.
pub struct Watched {
    /// What it told.
    pub findings: Findings,
    /// The sweeps.
    pub sweeps: u64,
    planted: Vec<Planted>,
    happenings: Vec<(&'static str, usize)>,
    size: Size,
}

/// Watches a site for its time.
pub fn watch(size: Size, seed: u64) -> Watched {
    let Site { story, planted, happenings } = Site::new(size, seed);
    let simulated = Simulated::with(story, Site::options(&size));
    let mut findings = Findings::default();
    let mut swept = 0;
    let step = size.interval / 4;
    while simulated.passed() < size.length {
        simulated.run_for(step);
        let observation = simulated.observation();
        // The latest sweep, and events since then.
        if observation.stats.sweeps > swept {
            swept = observation.stats.sweeps;
            findings.add(simulated.passed(), &observation);
        }
    }
    Watched { findings, sweeps: swept, planted, happenings, size }
}

impl Watched {
    /// What is wrong: too many findings, one that does not say what to do, or a planted cable that is not called bad.
    pub fn wrong(&self) -> Vec<String> {
        let all = self.findings.all();
        let mut wrong = Vec::new();
        let Findings { links, nodes, switches, .. } = self.findings;
        if (nodes, switches, links) != self.size.counts() {
            wrong.push(format!("{nodes} nodes, {switches} switches and {links} links were found"));
        }
        if all.len() > MOST_FINDINGS {
            wrong.push(format!("{} findings, more than {MOST_FINDINGS}", all.len()));
        }
        let idle = all.iter().filter(|it| it.repair.is_empty());
        wrong.extend(idle.map(|it| format!("nothing to do about {it}")));
        for Planted { fault, ends, at } in &self.planted {
            let is_its = |about: &str| {
                let mut found: Vec<&str> = about.split(" to ").collect();
                let mut wanted = ends.each_ref().map(String::as_str);
                found.sort_unstable();
                wanted.sort_unstable();
                found == wanted
            };
            match all.iter().find(|it| is_its(&it.about)) {
                Some(found) if found.verdict == Verdict::Bad && found.worst_from < *at => {
                    let bad = humantime::format_duration(found.worst_from);
                    wrong.push(format!("the cable that {fault} was bad before, from {bad} on"));
                }
                Some(found) if found.verdict == Verdict::Bad => {}
                Some(found) => wrong.push(format!("the cable that {fault} is only {found}")),
                None => wrong.push(format!("nothing is said of {ends:?}, which {fault}")),
            }
        }
        wrong
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { links, nodes, switches, verdicts, .. } = &self.findings;
        let hours = self.size.length.as_secs_f64() / 3600.0;
        let [ok, unknown, watch, bad] = verdicts;
        writeln!(
            f,
            "{nodes} nodes, {switches} of them switches; {links} links; {} sweeps in {hours} hours",
            self.sweeps
        )?;
        writeln!(f, "links at the end: {ok} ok, {unknown} unknown, {watch} degraded, {bad} bad")?;
        writeln!(f, "What is not perfect, or happens:")?;
        for (what, count) in &self.happenings {
            writeln!(f, "  {count:>6} {what}")?;
        }
        for Planted { fault, ends, at } in &self.planted {
            let at = humantime::format_duration(*at);
            writeln!(f, "  planted: {} {fault}, from {at} on", ends.join(" to "))?;
        }
        let all = self.findings.all();
        writeln!(f, "Findings: {}", all.len())?;
        for (nth, finding) in all.iter().enumerate() {
            writeln!(f, "{:>4} {finding}", nth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn planted_cable_is_found_if_it_is_called_bad_after_its_fault_began() {
        let minutes = |minutes| Duration::from_secs(60 * minutes);
        let wrong = |told: &[(u64, Verdict)]| {
            let ends = ["a port 1", "b port 2"].map(str::to_owned);
            let mut findings = Findings::default();
            (findings.nodes, findings.switches, findings.links) = Size::SMALL.counts();
            for &(at, verdict) in told {
                let (why, repair) = ("a reason".to_owned(), "Replace it.".to_owned());
                findings.tell(minutes(at), "b port 2 to a port 1", verdict, why, repair);
            }
            let planted = vec![Planted { fault: "flaps", ends, at: minutes(30) }];
            let (size, happenings) = (Size::SMALL, Vec::new());
            let watched = Watched { findings, sweeps: 0, planted, happenings, size };
            watched.wrong().join("\n")
        };
        assert_eq!(wrong(&[(30, Verdict::Bad)]), "");
        assert_eq!(wrong(&[(10, Verdict::Watch), (31, Verdict::Bad)]), "");
        let early = "the cable that flaps was bad before, from 29m on";
        assert_eq!(wrong(&[(29, Verdict::Bad), (31, Verdict::Bad)]), early);
        assert!(
            wrong(&[(31, Verdict::Watch)]).starts_with("the cable that flaps is only degraded")
        );
        assert!(wrong(&[]).starts_with("nothing is said of "));
    }
}
