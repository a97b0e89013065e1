//! Control messages: clients connect, get a slot, and disconnect.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::batch;
use super::impairment::Impairment;
use super::relay::Relay;
use super::simulation::{Responder, Served};

/// A control message: magic, client's slot, type, length, then data; numbers in native byte order.
type Message = [u8; 80];

const MAGIC: u32 = 0xdead_beef;
const PLACE: usize = 4;
const TYPE: usize = 8;
/// In a connect message the process id in the request and the slot in the response.
const DATA: usize = 16;

const TYPE_ERROR: u32 = 0;
const TYPE_CONNECT: u32 = 1;
const TYPE_DISCONNECT: u32 = 2;

/// How long ibsim may take to respond to a control message.
const IBSIM_LIMIT: Duration = Duration::from_secs(10);

/// How long a closed socket's name may stay taken.
const FREED_LIMIT: Duration = Duration::from_secs(5);

/// The control side of a proxy, on a thread of its own.
pub struct Control {
    front: String,
    back: String,
    impairment: Impairment,
    served: Option<Served>,
    socket: UnixDatagram,
    stop: UnixStream,
    /// By the name of the client's own control socket.
    clients: HashMap<Vec<u8>, Client>,
    /// The number of clients so far.
    count: u64,
}

/// A client with a slot.
struct Client {
    /// None when ibsim has given the slot to another client.
    place: Option<u32>,
    /// To ibsim, in the client's name.
    control: UnixDatagram,
    /// Held until ibsim has the slot back: if it were closed first, ibsim would free the slot by
    /// itself at its next response, and then lose the client that got it by the message that frees it.
    _back: UnixDatagram,
    // Dropped to end the thread.
    alive: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Control {
    /// Takes the name `front` for clients of the ibsim `back`.
    pub fn new(
        front: &str,
        back: &str,
        impairment: Impairment,
        served: Option<Served>,
        stop: UnixStream,
    ) -> io::Result<Self> {
        Ok(Self {
            front: front.to_owned(),
            back: back.to_owned(),
            impairment,
            served,
            socket: UnixDatagram::bind_addr(&address(&format!("{front}:ctl"))?)?,
            stop,
            clients: HashMap::new(),
            count: 0,
        })
    }

    /// Serves clients until `stop` is readable.
    pub fn run(mut self) {
        // An invalid message gets no response, and does not affect other clients.
        while let Ok([0, _]) = batch::wait(
            [(self.stop.as_fd(), libc::POLLIN), (self.socket.as_fd(), libc::POLLIN)],
            None,
        ) {
            let mut message = [0; 80];
            let Ok((80, from)) = self.socket.recv_from(&mut message) else {
                continue;
            };
            let Some(client) = from.as_abstract_name().map(<[u8]>::to_vec) else {
                continue;
            };
            if number(&message, 0) != MAGIC {
                continue;
            }
            if number(&message, TYPE) == TYPE_CONNECT {
                self.clients.remove(&client); // an earlier process with the same id
                self.leave_dead();
            }
            if self.answer(client, &mut message).is_err() {
                set_number(&mut message, TYPE, TYPE_ERROR);
            }
            let _ = self.socket.send_to_addr(&message, &from); // it may be gone by now
        }
    }

    /// The response to a message.
    fn answer(&mut self, name: Vec<u8>, message: &mut Message) -> io::Result<()> {
        match number(message, TYPE) {
            TYPE_CONNECT => {
                let client = self.connect(message)?;
                self.clients.extend(client.map(|client| (name, client)));
                Ok(())
            }
            // Its end notifies ibsim; the message itself is response enough.
            TYPE_DISCONNECT => self.clients.remove(&name).map(drop).ok_or_else(stranger),
            _ => exchange(&self.clients.get(&name).ok_or_else(stranger)?.control, message),
        }
    }

    /// Gets a slot from ibsim for a client and starts its relay; `None` when ibsim refuses it.
    fn connect(&mut self, message: &mut Message) -> io::Result<Option<Client>> {
        let pid = number(message, DATA);
        let control = UnixDatagram::bind_addr(&address(&format!("{}:ctl{pid}", self.back))?)?;
        control.connect_addr(&address(&format!("{}:ctl", self.back))?)?;
        control.set_read_timeout(Some(IBSIM_LIMIT))?;
        // ibsim connects to this one before it responds.
        let back = UnixDatagram::bind_addr(&address(&format!("{}:in{pid}", self.back))?)?;
        exchange(&control, message)?;
        if number(message, TYPE) == TYPE_ERROR {
            return Ok(None);
        }
        let place = number(message, DATA);
        // ibsim gives away a slot only when it is free: its previous client here is gone, and its
        // relay must release the socket's name first.
        self.clients.retain(|_, client| {
            if client.place == Some(place) {
                client.place = None;
            }
            client.place.is_some()
        });
        let mut client = Client {
            place: Some(place),
            control,
            _back: back.try_clone()?,
            alive: None,
            thread: None,
        };
        back.connect_addr(&address(&format!("{}:out{place}", self.back))?)?;
        let front = bind_freed(&format!("{}:out{place}", self.front))?;
        front.connect_addr(&address(&format!("{}:in{pid}", self.front))?)?;
        let (alive, stop) = UnixStream::pair()?;
        let responder = self.served.as_ref().map(Responder::new);
        let (number, impairment) = (self.count, self.impairment);
        let relay = Relay { front, back, stop, number, impairment, responder };
        self.count += 1;
        client.alive = Some(alive);
        client.thread = Some(
            std::thread::Builder::new()
                .name(format!("proxy-{place}"))
                .spawn(move || relay.run())?,
        );
        Ok(Some(client))
    }

    /// Frees the slots of clients that ended without a message: the name of their socket is gone.
    fn leave_dead(&mut self) {
        self.clients.retain(|name, _| {
            UnixDatagram::unbound()
                .and_then(|probe| probe.connect_addr(&SocketAddr::from_abstract_name(name)?))
                .is_ok()
        });
    }
}

impl Drop for Client {
    /// Ends the relay and returns the slot to ibsim, which has only ten.
    fn drop(&mut self) {
        drop(self.alive.take());
        // Its error was a missing peer, which is why this client is removed.
        let _ = self.thread.take().map(JoinHandle::join);
        let Some(place) = self.place else { return };
        let mut message = [0; 80];
        set_number(&mut message, 0, MAGIC);
        set_number(&mut message, PLACE, place);
        set_number(&mut message, TYPE, TYPE_DISCONNECT);
        let _ = exchange(&self.control, &mut message);
    }
}

/// A message from a client that never connected.
fn stranger() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// Sends a message to ibsim and replaces it by the response.
fn exchange(ibsim: &UnixDatagram, message: &mut Message) -> io::Result<()> {
    ibsim.send(message)?;
    match ibsim.recv(message)? {
        80 => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The abstract address of a name; ibsim's end with a zero byte.
fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{name}\0"))
}

/// Takes a name whose last owner has just closed it.
///
/// The name can live on for a moment: a child process that another thread is starting right now has
/// copies of all this process's sockets until it becomes its program.
fn bind_freed(name: &str) -> io::Result<UnixDatagram> {
    let (name, deadline) = (address(name)?, Instant::now() + FREED_LIMIT);
    loop {
        match UnixDatagram::bind_addr(&name) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

fn number(message: &Message, at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&message[at..at + 4]);
    u32::from_ne_bytes(bytes)
}

fn set_number(message: &mut Message, at: usize, value: u32) {
    message[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}
