//! The MADs of one client, on one thread: requests are forwarded or dropped, responses are delayed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::{Duration, Instant};

use libc::{POLLIN, POLLOUT};

use super::batch::{self, Packet, PacketBuffers};
use super::impairment::Impairment;
use super::simulation::Responder;

/// Both directions of one client. Its thread ends at the other end of `stop`, or when a peer is gone.
pub struct Relay {
    /// To the client.
    pub front: UnixDatagram,
    /// To ibsim.
    pub back: UnixDatagram,
    /// Readable when it is time to end.
    pub stop: UnixStream,
    /// The number of clients before this one.
    pub number: u64,
    /// Delay and loss.
    pub impairment: Impairment,
    /// What responds in the place of ibsim.
    pub responder: Option<Responder>,
}

impl Relay {
    /// Forwards MADs until the end. An error means that a peer is gone.
    pub fn run(mut self) -> io::Result<()> {
        batch::wake_precisely();
        self.front.set_nonblocking(true)?;
        self.back.set_nonblocking(true)?;
        let mut dice = Dice::new(self.number);
        let mut inbox = PacketBuffers::new();
        let mut requests: VecDeque<Packet> = VecDeque::new();
        let mut replies: VecDeque<(Instant, Packet)> = VecDeque::new();
        loop {
            // Both sides are always read, whatever waits to be written: ibsim and its clients stop
            // reading while they cannot write, and would wait for each other forever.
            let timeout =
                replies.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
            let writes_due = timeout == Some(Duration::ZERO);
            let [stop, front, back] = batch::wait(
                [
                    (self.stop.as_fd(), POLLIN),
                    (self.front.as_fd(), POLLIN | if writes_due { POLLOUT } else { 0 }),
                    (self.back.as_fd(), POLLIN | if requests.is_empty() { 0 } else { POLLOUT }),
                ],
                // A delayed response waits until the client can take it, however long that is.
                timeout.filter(|_| !writes_due),
            )?;
            if stop != 0 {
                return Ok(());
            }
            if front != 0 {
                inbox.receive(&self.front, |request| {
                    if dice.roll() >= self.impairment.loss_permille {
                        requests.push_back(*request);
                    }
                })?;
            }
            if let Some(responder) = &mut self.responder {
                let now = Instant::now();
                replies
                    .extend(requests.drain(..).map(|request| (now, responder.respond(&request))));
            }
            send_all(&self.back, &mut requests, |packet| Some(packet))?;
            if back != 0 {
                let due = Instant::now() + self.impairment.delay;
                inbox.receive(&self.back, |reply| replies.push_back((due, *reply)))?;
            }
            let now = Instant::now();
            send_all(&self.front, &mut replies, |(due, packet)| (*due <= now).then_some(packet))?;
        }
    }
}

/// Sends the packets at the head of the queue that are due, as far as the peer takes them.
fn send_all<T>(
    socket: &UnixDatagram,
    queue: &mut VecDeque<T>,
    ready: impl Fn(&T) -> Option<&Packet>,
) -> io::Result<()> {
    while queue.front().is_some_and(|first| ready(first).is_some()) {
        let sent = batch::send(socket, queue.iter().map_while(&ready))?;
        if sent == 0 {
            break;
        }
        queue.drain(..sent);
    }
    Ok(())
}

/// The same random numbers in every run, so that a test that fails by a loss fails again.
struct Dice(u64);

impl Dice {
    /// A generator for the nth client: with the same numbers, each short program would lose the same MADs.
    fn new(client: u64) -> Self {
        let mut dice = Self((client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        dice.roll(); // the first roll of small seeds is poor
        dice
    }

    /// A number from 0 to 999, by Marsaglia's xorshift.
    fn roll(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % 1000) as u32
    }
}
