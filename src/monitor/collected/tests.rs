//! The monitor on endpoints and directories that do what a test says.

mod folders;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::SystemTime;

use super::*;
use crate::config::Settings;
use crate::config::options::{FabricOptions, Options};
use ib_mad::Counter;

/// A server that answers each request with the next answer, and the last one again and again.
struct Endpoint {
    port: u16,
    answers: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Endpoint {
    fn start() -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers: Arc<Mutex<VecDeque<Vec<u8>>>> = Arc::default();
        let of = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut answers = of.lock().unwrap();
                let answer =
                    if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
                drop(answers);
                respond(stream.unwrap(), &answer.unwrap_or_default());
            }
        });
        Endpoint { port, answers }
    }

    fn next(&self, answers: &[Vec<u8>]) {
        *self.answers.lock().unwrap() = answers.iter().cloned().collect();
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/csv/xcset/low_freq_debug", self.port)
    }
}

fn respond(mut stream: TcpStream, answer: &[u8]) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
        request.push(byte[0]);
    }
    let _ = stream.write_all(answer);
}

fn response(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

const HEADER: &str = "timestamp,Node_GUID,Port_Number,node_description,logical_state,phy_state,Link_speed_active,\
                      Link_width_active,link_partner_node_guid,link_partner_port_num,SymbolErrorCounter,PortRcvErrors";

/// A leaf with two hosts, at a second, with these receive errors of the first host.
fn csv(second: u64, errors: &str) -> String {
    let at = (1_700_000_000 + second) * 1_000_000;
    let mut text = format!("{HEADER}\n");
    for (node, port, name, peer, peer_port, errors) in [
        ("0xa", 1, "leaf", "0xb", 1, "0"),
        ("0xa", 3, "leaf", "0xc", 1, "0"),
        ("0xb", 1, "host-1 mlx5_0", "0xa", 1, errors),
        ("0xc", 1, "host-2 mlx5_0", "0xa", 3, "0"),
    ] {
        let row = format!("{at},{node},{port},{name},4,5,512,2,{peer},{peer_port},0,{errors}\n");
        text.push_str(&row);
    }
    text
}

fn now(second: u64) -> Anchor {
    let since = Duration::from_secs(second);
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + since;
    Anchor { moment: Moment::default() + since, wall }
}

struct Watched {
    monitor: CollectedMonitor,
    states: watch::Receiver<SharedState>,
}

impl Watched {
    fn new(from: &str) -> Watched {
        let fabric = FabricOptions { from: Some(from.into()), ..FabricOptions::default() };
        let options = Options { fabric, ..Options::default() };
        let settings = Settings::load(options, None).unwrap().fabrics.remove(0);
        let (shared, states) = watch::channel(SharedState::from(vec![Arc::default()]));
        let (from, stop) = (settings.from.clone().unwrap(), Arc::default());
        let monitor = CollectedMonitor::new(settings, &from, Arc::new(shared), 0, stop).unwrap();
        Watched { monitor, states }
    }

    fn poll(&mut self, second: u64) -> bool {
        self.monitor.poll(now(second))
    }

    fn latest(&self) -> Arc<Observation> {
        Arc::clone(&self.states.borrow().fabrics[0])
    }

    fn problem(&self) -> Option<String> {
        self.latest().source.as_ref().and_then(|source| source.problem.clone())
    }

    fn errors(&self) -> Option<u64> {
        let latest = self.latest();
        let snapshot = latest.snapshot.as_ref()?;
        let port = snapshot.fabric.find(ib_mad::PortKey::new(ib_mad::Guid(0xb), 1))?;
        snapshot.reading(port)?.get(Counter::RcvErrors)
    }
}

#[test]
fn what_was_read_once_is_no_new_reading() {
    let endpoint = Endpoint::start();
    let mut watched = Watched::new(&endpoint.url());
    endpoint.next(&[response("200 OK", &csv(0, "5"))]);
    assert!(watched.poll(1) && !watched.poll(16));
    assert_eq!(watched.errors(), Some(5));
    let first = watched.latest();
    assert_eq!(first.interval, Duration::from_secs(300), "until it is known");
    assert_eq!(first.assessment.links.len(), 2);
    endpoint.next(&[response("200 OK", &csv(30, "9"))]);
    assert!(watched.poll(31));
    let second = watched.latest();
    let source = second.source.as_ref().unwrap();
    assert_eq!(
        (source.interval, second.interval),
        (Some(Duration::from_secs(30)), Duration::from_secs(30))
    );
    assert_eq!(
        (&*source.format, &source.limits[..], watched.errors()),
        ("ufm_csv", &[][..], Some(9))
    );
    let ended = |of: &Observation| of.snapshot.as_ref().unwrap().ended;
    assert_eq!(ended(&second).since(ended(&first)), Duration::from_secs(30), "as the data says");
    let wall = second.snapshot.as_ref().unwrap().anchor.wall;
    assert_eq!(wall, now(30).wall);
    // Nothing new is to be expected before 24 s have passed.
    endpoint.next(&[response("200 OK", &csv(60, "9"))]);
    assert!(!watched.poll(46) && watched.poll(61));
    assert_eq!(second.mads.total(ib_umad::stats::MadOutcome::Answered), 0);
}

#[test]
fn failures_are_told_once_and_the_next_good_answer_counts() {
    let endpoint = Endpoint::start();
    let mut watched = Watched::new(&endpoint.url());
    endpoint.next(&[response("200 OK", &csv(0, "5"))]);
    assert!(watched.poll(1));
    let whole = response("200 OK", &csv(300, "6"));
    let mut second = 1;
    for (answer, says) in [
        (response("503 Service Unavailable", "busy"), "HTTP status 503; see whether"),
        (response("401 Unauthorized", ""), "--fabric.from-password-file"),
        (response("200 OK", "<html>login</html>"), "found a web page"),
        (response("200 OK", ""), "found an empty body"),
        (response("200 OK", &format!("{HEADER}\n")), "it has no ports"),
        (whole[..whole.len() - 40].to_vec(), "; see whether"),
        (Vec::new(), "; see whether"),
        (response("200 OK", "node_guid,port_num,lid\n0xa,1,3\n"), "neither counters nor cables"),
    ] {
        endpoint.next(&[answer]);
        second += 300;
        assert!(!watched.poll(second), "{says}");
        let problem = watched.problem().unwrap_or_default();
        assert!(problem.contains(says) && !problem.contains('\n'), "{says}: {problem}");
        assert_eq!(watched.errors(), Some(5), "the last data stays");
        assert!(!watched.latest().stats.success(Collector::Perfmgt));
    }
    endpoint.next(&[response("200 OK", &csv(second + 300, "6"))]);
    assert!(watched.poll(second + 300));
    assert_eq!((watched.problem(), watched.errors()), (None, Some(6)));
    assert!(watched.latest().stats.success(Collector::Perfmgt));
}

#[test]
fn endpoint_that_does_not_answer_is_asked_less_and_less_often() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut watched = Watched::new(&format!("http://127.0.0.1:{port}/metrics"));
    let mut asked = Vec::new();
    for second in (0..1800).step_by(15) {
        let Reader::Endpoints(endpoints) = &watched.monitor.reader else { panic!("endpoints") };
        if endpoints.is_due(now(second).moment) {
            asked.push(second);
        }
        watched.poll(second);
    }
    assert_eq!(asked, [0, 15, 45, 105, 225, 465, 765, 1065, 1365, 1665]);
    assert!(watched.problem().unwrap().contains("refused"), "{:?}", watched.problem());
    assert_eq!(watched.latest().stats.sweeps, 0);
}

#[test]
fn data_that_stands_still_is_a_problem_after_four_intervals() {
    let endpoint = Endpoint::start();
    let mut watched = Watched::new(&endpoint.url());
    for second in [0, 30] {
        endpoint.next(&[response("200 OK", &csv(second, "5"))]);
        assert!(watched.poll(second + 1));
    }
    assert!(!watched.poll(31 + 180) && watched.problem().is_none());
    assert!(!watched.poll(31 + 300));
    assert!(watched.problem().unwrap().starts_with("the data has not changed for 5 minutes: "));
    endpoint.next(&[response("200 OK", &csv(400, "5"))]);
    assert!(watched.poll(401) && watched.problem().is_none());
}

#[test]
fn port_that_the_source_does_not_read_any_more_has_no_reading() {
    let endpoint = Endpoint::start();
    let mut watched = Watched::new(&endpoint.url());
    let of_host = |second: u64| {
        let old = format!("{},0xb", 1_700_000_000_000_000_u64);
        csv(second, "5").replace(&format!("{},0xb", (1_700_000_000 + second) * 1_000_000), &old)
    };
    for second in (0..=300).step_by(30) {
        endpoint.next(&[response("200 OK", &of_host(second))]);
        assert!(watched.poll(second + 1), "{second}");
        let is_there = second <= 180;
        assert_eq!(watched.errors().is_some(), is_there, "{second}");
    }
    assert_eq!(watched.latest().stats.failed_ports, 1);
}

#[test]
fn rare_data_and_data_without_cables_have_limits() {
    let endpoint = Endpoint::start();
    let mut watched = Watched::new(&endpoint.url());
    for second in [0, 300] {
        endpoint.next(&[response("200 OK", &csv(second, "5"))]);
        assert!(watched.poll(second + 1));
    }
    let limits = |watched: &Watched| watched.latest().source.as_ref().unwrap().limits.clone();
    assert!(limits(&watched)[0].contains("less than once a minute"), "{:?}", limits(&watched));
    let primary = "timestamp,node_guid,port_num,PortRcvErrors\n1700000600000000,0xb,1,7\n";
    endpoint.next(&[response("200 OK", primary)]);
    assert!(watched.poll(601));
    // The cables stay known, as those of links that are down.
    assert!(limits(&watched).iter().any(|limit| limit.contains("less than once a minute")));
    let mut fresh = Watched::new(&endpoint.url());
    assert!(fresh.poll(601));
    assert!(limits(&fresh)[0].contains("no cables"), "{:?}", limits(&fresh));
}

#[test]
fn counters_of_one_endpoint_are_joined_with_the_cables_of_another() {
    let (primary, secondary) = (Endpoint::start(), Endpoint::start());
    let mut watched = Watched::new(&format!("{} {}", primary.url(), secondary.url()));
    let counters = |second: u64, errors: u64| {
        let at = (1_700_000_000 + second) * 1_000_000;
        response(
            "200 OK",
            &format!("timestamp,node_guid,port_num,PortRcvErrors\n{at},0xb,1,{errors}\n"),
        )
    };
    primary.next(&[counters(0, 7)]);
    secondary.next(&[response("500 Oops", "")]);
    assert!(!watched.poll(1), "without its cables it would be another fabric");
    assert!(watched.problem().unwrap().contains("HTTP status 500"));
    secondary.next(&[response("200 OK", &csv(0, "5"))]);
    assert!(watched.poll(16), "the sample of the first one has waited");
    assert_eq!((watched.errors(), watched.problem()), (Some(7), None));
    primary.next(&[counters(30, 8)]);
    assert!(watched.poll(31));
    assert_eq!((watched.errors(), watched.latest().assessment.links.len()), (Some(8), 2));
    secondary.next(&[response("500 Oops", "")]);
    primary.next(&[counters(60, 9)]);
    assert!(watched.poll(61), "the last cables are used on");
    assert_eq!((watched.errors(), watched.problem()), (Some(9), None));
    let limits = |watched: &Watched| watched.latest().source.as_ref().unwrap().limits.clone();
    for second in (90..=300).step_by(30) {
        primary.next(&[counters(second, 9)]);
        assert!(watched.poll(second + 1), "{second}");
        let is_old = second > 31 + 180;
        assert_eq!(watched.problem().is_some(), is_old, "{second}: {:?}", watched.problem());
        assert_eq!(watched.latest().stats.success(Collector::Discovery), !is_old, "{second}");
    }
    let says = "its cables and states are old: ";
    assert!(limits(&watched)[0].starts_with(says), "{:?}", limits(&watched));
    assert!(!watched.poll(316) && watched.problem().unwrap().contains("HTTP status 500"));
    secondary.next(&[response("200 OK", &csv(600, "5"))]);
    primary.next(&[counters(600, 9)]);
    assert!(watched.poll(601));
    assert_eq!((watched.problem(), limits(&watched).len()), (None, 1));
    assert!(limits(&watched)[0].contains("less than once a minute"), "{:?}", limits(&watched));
}

#[test]
fn another_endpoint_that_stands_still_is_reported() {
    let (primary, secondary) = (Endpoint::start(), Endpoint::start());
    let mut watched = Watched::new(&format!("{} {}", primary.url(), secondary.url()));
    let counters = |second: u64| {
        let at = (1_700_000_000 + second) * 1_000_000;
        response("200 OK", &format!("timestamp,node_guid,port_num,PortRcvErrors\n{at},0xb,1,7\n"))
    };
    let says = "/csv/xcset/low_freq_debug: the data has not changed for 21 minutes";
    for has_times in [true, false] {
        let mut cables = csv(0, "5");
        if !has_times {
            cables = cables.replace("timestamp", "other");
        }
        secondary.next(&[response("200 OK", &cables)]);
        for second in (0..1500).step_by(30) {
            primary.next(&[counters(second)]);
            assert!(watched.poll(second + 1), "{second}");
            // Four intervals of the secondary telemetry, and a minute.
            let problem = watched.problem();
            assert_eq!(problem.is_some(), has_times && second > 1260, "{second}: {problem:?}");
            assert!(second != 1290 || problem.is_none_or(|problem| problem.contains(says)));
        }
        watched = Watched::new(&format!("{} {}", primary.url(), secondary.url()));
    }
}

#[test]
fn monitor_that_is_stopped_does_not_wait_for_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let watched = Watched::new(&format!("http://127.0.0.1:{port}/csv"));
    let (stop, heartbeat) = (Arc::clone(&watched.monitor.stop), watched.monitor.heartbeat());
    let running = std::thread::spawn(move || watched.monitor.run(Clock::start()));
    // The connection is accepted, but gets no response.
    let _connection = listener.accept().unwrap();
    let before = heartbeat.ticks();
    while heartbeat.ticks() < before + 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    stop.store(true, Ordering::Relaxed);
    let began = Instant::now();
    running.join().unwrap();
    assert!(began.elapsed() < TIMEOUT_OF_TEST, "{:?}", began.elapsed());
}

/// Far less than the time limit of a response.
const TIMEOUT_OF_TEST: Duration = Duration::from_secs(20);
