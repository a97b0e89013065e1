//! `top`: a live view of the fabric on a terminal: the worst cables, the busiest links, congestion and events. The
//! terminal's thread draws and reads keys, and never waits for the source: `fetch` runs on a thread of its own.

mod app;
mod draw;
mod fetch;
mod request;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use yaml_config::units::HumanDuration;

use super::leftovers;
use super::past::PastArgs;
use super::source::SourceArgs;
use super::terminal::{self, ColorChoice};
use crate::exit::{Exit, Fatal};
use app::App;
use fetch::{Fetcher, Response};
use request::Request;

const EXAMPLES: &str = "\
Examples:
  fabric-exporter top --url http://127.0.0.1:10315
  fabric-exporter top --fabric.hca=mlx5_1

Keys: 1 to 4 or Tab select a view, arrows a row, Enter shows its ports, Esc goes back, s sorts, /
filters, p pauses, ? lists all keys, q ends. With --url, events need an exporter with
--history.file.";

/// The longest time without a key or an response: then the clock on the screen is late by as much.
const TICK: Duration = Duration::from_millis(100);

/// How long the end waits for sweeps. Most need a tenth of a second.
const SWEEP_END: Duration = Duration::from_millis(500);

/// The arguments of `top`.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct TopArgs {
    /// Time between two updates [default: 5s]
    #[arg(long, value_name = "DURATION")]
    refresh: Option<HumanDuration>,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    past: PastArgs,
}

/// Shows the fabric until q, a signal, or the end of the terminal.
pub fn run(args: TopArgs, color: ColorChoice) -> Result<(), Fatal> {
    if !std::io::stdout().is_terminal() {
        return Err(Fatal::usage("top needs a terminal: use \"links --watch\" in a file or pipe"));
    }
    let pause = args.refresh.map_or(Duration::from_secs(5), Duration::from);
    let pause = pause.max(Duration::from_secs(1));
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))
            .map_err(Fatal::failed_to("cannot install the handlers of signals"))?;
    }
    leftovers::leave_signals_to_others();
    let fetcher = Fetcher::new(args.source, &args.past, pause)?;
    let mut app = App::new(fetcher.source.name());
    let (requests, orders) = channel();
    let (responses, answered) = channel();
    let sweeps = fetcher.source.sweeps();
    let fetching = std::thread::spawn(move || fetcher.run(&orders, &responses, pause));
    let view = View { app: &mut app, requests, answered, is_over: &is_over, colors: color.is_on() };
    let has_left = end_when_stuck(Arc::clone(&is_over));
    let result = on_terminal(|terminal| view.run(terminal));
    has_left.store(true, Ordering::Relaxed);
    // Sweeps end before the process does. A request, or a device that hangs, may take longer than anybody waits.
    let left = Instant::now();
    while sweeps && !fetching.is_finished() && left.elapsed() < SWEEP_END {
        std::thread::sleep(Duration::from_millis(10));
    }
    if fetching.is_finished() && fetching.join().is_err() {
        return Err(Fatal::failed("internal error: the update failed"));
    }
    result
}

/// Ends the view when its terminal is gone, and the process if the view does not end then, or after a signal: crossterm
/// reads the end of a terminal that was deleted again and again, and returns no more. Returns what to set when the view
/// has ended.
fn end_when_stuck(is_over: Arc<AtomicBool>) -> Arc<AtomicBool> {
    let has_left = Arc::new(AtomicBool::new(false));
    let left = Arc::clone(&has_left);
    std::thread::spawn(move || {
        while !left.load(Ordering::Relaxed) {
            if terminal::is_gone() {
                is_over.store(true, Ordering::Relaxed);
            }
            if is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(500));
                if !left.load(Ordering::Relaxed) {
                    ratatui::restore();
                    leftovers::remove_all();
                    std::process::exit(i32::from(Exit::Failed as u8));
                }
            }
            std::thread::sleep(TICK);
        }
    });
    has_left
}

/// Runs something in the alternate screen, and restores the terminal, also after a panic.
fn on_terminal(run: impl FnOnce(&mut DefaultTerminal) -> Result<(), Fatal>) -> Result<(), Fatal> {
    let failed = Fatal::failed_to("cannot set the terminal");
    // It also installs a panic hook that restores the terminal.
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let result = run(&mut terminal);
    ratatui::restore();
    result
}

struct View<'a> {
    app: &'a mut App,
    requests: Sender<Request>,
    answered: Receiver<Response>,
    is_over: &'a AtomicBool,
    colors: bool,
}

impl View<'_> {
    fn run(self, terminal: &mut DefaultTerminal) -> Result<(), Fatal> {
        let failed = Fatal::failed_to("the terminal failed");
        let request = |request: &Request| {
            // The fetching thread only ends with this one, or by a panic, which the responses show.
            let _ = self.requests.send(request.clone());
        };
        request(&self.app.request);
        let mut drawn = None;
        while !self.is_over.load(Ordering::Relaxed) {
            let is_late = drawn.is_none_or(|at: Instant| at.elapsed() >= Duration::from_secs(1));
            if is_late {
                terminal.draw(|frame| draw::draw(frame, self.app, self.colors)).map_err(&failed)?;
                drawn = Some(Instant::now());
            }
            let is_ready = event::poll(TICK).map_err(&failed)?;
            if is_ready {
                let before = self.app.request.clone();
                let is_over = self.app.handle(&event::read().map_err(&failed)?);
                if is_over {
                    return Ok(());
                }
                if self.app.request != before {
                    request(&self.app.request);
                }
                drawn = None;
            }
            loop {
                match self.answered.try_recv() {
                    Ok(response) => {
                        self.app.take(response)?;
                        drawn = None;
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        return Err(Fatal::failed("internal error: the update failed"));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_rig::pty::OnTerminal;

    /// The test starts itself on a terminal, and panics there.
    #[test]
    fn panic_restores_the_terminal() {
        const PANIC: &str = "FABRIC_EXPORTER_TEST_PANIC";
        if std::env::var_os(PANIC).is_some() {
            let _ = on_terminal(|_| panic!("on purpose"));
        }
        let test = std::env::current_exe().unwrap();
        let variable = format!("{PANIC}=1");
        let name = "cli::top::tests::panic_restores_the_terminal";
        let args = [
            "RUST_BACKTRACE=0",
            &*variable,
            test.to_str().unwrap(),
            "--exact",
            name,
            "--nocapture",
        ];
        let mut on_terminal = OnTerminal::spawn("env", &args, 24, 100);
        assert!(!on_terminal.wait_for_end().success());
        on_terminal.wait_for("on purpose");
    }
}
