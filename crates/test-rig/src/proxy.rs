//! A slow and lossy way to an ibsim.
//!
//! ibsim answers within microseconds and never loses a MAD; real fabrics do neither. The proxy takes
//! the place of ibsim for the clients that use its socket name, hands everything on, and adds a
//! delay to every reply and loss to some requests.
//!
//! ibsim's protocol is datagrams between abstract unix sockets, with NAME the common base name:
//! - `NAME:ctl` takes control messages of 80 bytes from a client's `NAME:ctl<pid>` and answers each.
//!   The client's first message names its process id, the answer names the client's place 0 to 9.
//! - MADs go from the client's `NAME:in<pid>` to ibsim's `NAME:out<place>` and back, 288 bytes each.

mod batch;
mod control;
mod impairment;
mod relay;
mod simulation;

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub use simulation::Served;

use super::Ibsim;
use super::child::Output;
use super::seat::Seat;
use impairment::Impairment;

/// A running proxy. Clients must have ended before it is dropped, as with ibsim itself.
pub struct Proxy {
    seat: Seat,
    // Dropped to end the thread, which polls the other end.
    alive: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy before `ibsim`. The losses are the same in every run.
    pub fn between(ibsim: &Ibsim, delay: Duration, loss_permille: u32) -> Self {
        Self::start(ibsim, Impairment { delay, loss_permille }, None)
    }

    /// Starts a proxy that has our simulation respond to MADs. The ibsim must have the same net.
    pub fn to_simulation(ibsim: &Ibsim, served: Served) -> Self {
        Self::start(ibsim, Impairment { delay: Duration::ZERO, loss_permille: 0 }, Some(served))
    }

    fn start(ibsim: &Ibsim, impairment: Impairment, served: Option<Served>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (alive, stop) = UnixStream::pair().expect("no socket pair for the proxy");
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let front = format!("{}-proxy-{number}", ibsim.socket_name());
        let control = control::Control::new(&front, ibsim.socket_name(), impairment, served, stop)
            .unwrap_or_else(|e| panic!("the proxy cannot take the socket name {front}: {e}"));
        let thread = std::thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || control.run())
            .expect("no thread for the proxy");
        Self { seat: ibsim.seat().under(&front), alive: Some(alive), thread: Some(thread) }
    }

    /// The name under which clients reach the fabric by this proxy.
    pub fn socket_name(&self) -> &str {
        self.seat.socket_name()
    }

    /// The fabric's clients' place, reached by this proxy.
    pub fn seat(&self) -> Seat {
        self.seat.clone()
    }

    /// [`Seat::tool`] by this proxy.
    pub fn tool(&self, program: &str, args: &[&str]) -> String {
        self.seat.tool(program, args)
    }

    /// [`Seat::try_tool`] by this proxy.
    pub fn try_tool(&self, program: &str, args: &[&str]) -> Output {
        self.seat.try_tool(program, args)
    }
}

impl From<&Proxy> for Seat {
    fn from(proxy: &Proxy) -> Self {
        proxy.seat()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.alive.take());
        let ended = self.thread.take().is_none_or(|thread| thread.join().is_ok());
        assert!(ended || std::thread::panicking(), "the proxy's thread panicked");
    }
}
