//! A monitor of a fabric with untrusted responses: discovery, sweeps, clearing of counters, evaluation and
//! exposition.
//!
//! A small simulated fabric responds; the bytes say how its responses are changed: some are lost, modified,
//! duplicated, or come from another node. Time is virtual.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use fabric_exporter::config::options::Options;
use fabric_exporter::config::{FabricSettings, Settings};
use fabric_exporter::monitor::Monitor;
use fabric_observation::{Observation, SharedState};
use ib_mad::class_port_info::{ClassPortInfo, PmaCapabilities};
use ib_mad::moment::Anchor;
use ib_mad::pma::DetailPolicy;
use ib_mad::{LEN, Mad};
use ib_mad::{Lid, Moment};
use ib_sim::scenario::{Overrides, ResolvedScenario, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use tokio::sync::watch;

use super::exposition;
use super::input::Input;

/// A fabric of which all attributes are queried, with some events.
const SCENARIO: &str = "fabric: {fat-tree: {hosts: 3, radix: 4, down: 2, up: 1}}\n\
    traffic: {pattern: neighbours, load: 30%}\n\
    timeline:\n\
    - bad-cable: {at: 1s, into: \"leaf-0-0[1]\", ratio: 1e-9}\n\
    - unplug: {at: 20s, link: host-2, for: 10s}\n";

/// The duration: four sweeps, with a link that goes down and up.
const WATCHED: Duration = Duration::from_secs(50);

/// Maximum number of MADs, whatever the responses: each byte of a script lets a device invent at most one
/// port, which is queried several times in each sweep.
const MOST_SENT: u64 = 1 << 20;

thread_local! {
    static STORY: ResolvedScenario = Scenario::parse("fuzzed", SCENARIO)
        .and_then(|scenario| scenario.resolve(&Overrides::default()))
        .unwrap();
    static SETTINGS: FabricSettings =
        Settings::load(Options::default(), None).unwrap().fabrics.remove(0);
}

/// When virtual time begins.
pub fn began() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// A resolved scenario of a small fabric, and its initial state.
pub fn story() -> ResolvedScenario {
    STORY.with(ResolvedScenario::clone)
}

pub fn run(bytes: &[u8]) {
    exposition::check(watch(bytes));
}

/// Runs the monitor with a transport that is changed in this way.
pub fn watch(script: &[u8]) -> SharedState {
    let mut script = Input::new(script);
    let flags = script.u8();
    let settings = FabricSettings {
        details: if flags & 1 != 0 {
            DetailPolicy::EachSweep
        } else {
            DetailPolicy::Every(Duration::from_secs(30))
        },
        fec: flags & 2 == 0,
        clear_saturated: flags & 4 != 0,
        ..SETTINGS.with(FabricSettings::clone)
    };
    let story = story();
    let seat = story.local_ports[0];
    let time = SimClock::Virtual { began: began() };
    let stop = Arc::new(AtomicBool::new(false));
    let wire = Hostile {
        inner: SimTransport::new(share(Simulation::new(story)), seat, time),
        until: Moment::default() + WATCHED,
        stop: Arc::clone(&stop),
        script,
        left_alone: 0,
        besides: VecDeque::new(),
        refused: 0,
        sent: 0,
    };
    let blank = Observation { fabric: settings.name.clone(), ..Observation::default() };
    let (board, seen) = watch::channel(SharedState::from(vec![Arc::new(blank)]));
    let monitor = Monitor::new(settings, None, Arc::new(board), 0, stop).unwrap();
    monitor.run(wire, || Err::<Hostile<'_>, _>("it is gone"));
    seen.borrow().clone()
}

/// A transport that modifies responses.
struct Hostile<'a> {
    inner: SimTransport,
    until: Moment,
    stop: Arc<AtomicBool>,
    script: Input<'a>,
    /// Number of further responses that are not changed.
    left_alone: u32,
    /// Additional received MADs.
    besides: VecDeque<Received>,
    /// Number of further MADs that are refused.
    refused: u8,
    sent: u64,
}

impl Hostile<'_> {
    fn gone<T>() -> Result<T, TransportError> {
        Err(TransportError { device: "fuzzed".into(), problem: "it went".into() })
    }

    /// The modified response; `None` if it is lost.
    fn change(&mut self, from: Lid, mut mad: Mad) -> Result<Option<Received>, TransportError> {
        if self.left_alone > 0 || self.script.is_empty() {
            self.left_alone = self.left_alone.saturating_sub(1);
            return Ok(Some(Received::Mad { from, mad }));
        }
        let script = &mut self.script;
        let what = script.u8();
        let little = what & 0x0f;
        match what >> 4 {
            // One byte is enough to reach late responses.
            0..=2 => self.left_alone = u32::from(what),
            3 => self.left_alone = u32::from(little) << 4,
            4..=6 => {
                for _ in 0..=little {
                    let at = usize::from(script.u8());
                    mad.0[at] = script.u8();
                }
            }
            7 => {
                let at = usize::from(script.u8());
                let put = script.bytes(1 << little.min(7));
                mad.0[at..].iter_mut().zip(put).for_each(|(to, from)| *to = *from);
            }
            8 => return Ok(None),
            9 => {
                let again = Received::Mad { from, mad: mad.clone() };
                self.besides.extend(std::iter::repeat_n(again, usize::from(little) + 1));
            }
            10 => {
                let from = Lid(script.u16());
                return Ok(Some(Received::Mad { from, mad }));
            }
            11 => return Ok(Some(Received::Malformed { bytes: usize::from(script.u16()) })),
            12 => {
                let transaction_id = mad.transaction_id().wrapping_sub(u32::from(little));
                return Ok(Some(Received::Expired { class: mad.class(), transaction_id }));
            }
            13 => mad.set_status(script.u16()),
            14 => {
                mad.set_status(2);
                mad.put_be(16, 2, u64::from(ClassPortInfo::ID));
                ClassPortInfo {
                    redirect_lid: Lid(script.u16()),
                    redirect_qp: script.u32(),
                    redirect_qkey: script.u32(),
                    redirect_sl: little,
                    redirect_pkey: u16::from(little),
                    ..ClassPortInfo::new(PmaCapabilities::default(), 0)
                }
                .encode(&mut mad);
            }
            _ => match little {
                0..=3 => self.refused = script.u8(),
                4..=7 => mad.0[64..].fill(0xff),
                8..=11 => {
                    let whole = script.bytes(LEN);
                    mad.0.iter_mut().zip(whole).for_each(|(to, from)| *to = *from);
                }
                12..=14 => mad.0[64..].fill(0),
                _ => return Self::gone(),
            },
        }
        Ok(Some(Received::Mad { from, mad }))
    }
}

impl Drop for Hostile<'_> {
    /// A monitor that loses its transport waits for another one, in real time: there is none.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl MadTransport for Hostile<'_> {
    fn now(&self) -> Moment {
        self.inner.now()
    }

    fn anchor(&self) -> Anchor {
        self.inner.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.inner.local_port()
    }

    fn refresh(&mut self) {
        self.inner.refresh();
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        self.sent += 1;
        assert!(self.sent < MOST_SENT, "it never ends");
        if self.refused > 0 {
            self.refused -= 1;
            return Err(if self.refused & 1 == 0 {
                SendError::Full
            } else {
                SendError::Refused(std::io::ErrorKind::InvalidInput.into())
            });
        }
        self.inner.send(parcel)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        if let Some(besides) = self.besides.pop_front() {
            return Ok(Some(besides));
        }
        loop {
            let received = self.inner.receive(until)?;
            if self.inner.now() >= self.until {
                self.stop.store(true, Ordering::Relaxed);
            }
            match received {
                Some(Received::Mad { from, mad }) => {
                    let changed = self.change(from, mad)?;
                    if changed.is_some() {
                        return Ok(changed);
                    }
                }
                other => return Ok(other),
            }
        }
    }
}
