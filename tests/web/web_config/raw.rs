//! Bytes as no library would send them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};

/// A connection that does not wait for ever.
pub fn connect(address: &str) -> TcpStream {
    patient(TcpStream::connect(address).unwrap())
}

/// The same from an address of the loopback, such as 127.0.0.2.
pub fn connect_from(own: [u8; 4], address: &str) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((own, 0))).unwrap();
    rustix::net::connect(&socket, &address.parse::<SocketAddr>().unwrap()).unwrap();
    patient(socket.into())
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// All that comes until the other side closes, however it does so.
pub fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(bytes @ 1..) = stream.read(&mut chunk) {
        all.extend_from_slice(&chunk[..bytes]);
    }
    all
}

/// What comes back for some bytes.
pub fn say(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    // Whoever has heard enough closes before it has all.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    rest(&mut stream)
}

/// The status code of an HTTP answer.
pub fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.strip_prefix(b"HTTP/1.1 ").or_else(|| answer.strip_prefix(b"HTTP/1.0 "))?;
    std::str::from_utf8(line.get(..3)?).ok()?.parse().ok()
}

/// What a server answers to a client that speaks no newer TLS than a version.
#[derive(Debug, PartialEq, Eq)]
pub enum Greeted {
    /// With a handshake.
    Hello,
    /// With a fatal alert of this number.
    Alert(u8),
    /// With nothing that is known.
    Nothing,
}

/// Greets a server with a ClientHello as RFC 5246, 7.4.1.2 lays it out. 0x0302 is TLS 1.1.
pub fn greet(address: &str, version: u16) -> Greeted {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]); // random
    body.push(0); // no session
    body.extend([0, 6, 0xc0, 0x2b, 0xc0, 0x13, 0x00, 0x2f]); // ECDHE_ECDSA with AES_128_GCM, and older ones
    body.extend([1, 0]); // no compression
    let extensions = [
        0, 13, 0, 4, 0, 2, 4, 3, // signatures: ecdsa_secp256r1_sha256
        0, 10, 0, 4, 0, 2, 0, 23, // groups: secp256r1
        0, 11, 0, 2, 1, 0, // points: uncompressed
        0, 23, 0, 0, // extended master secret
    ];
    body.extend([0, u8::try_from(extensions.len()).unwrap()]);
    body.extend(extensions);
    let mut message = vec![1, 0, 0, u8::try_from(body.len()).unwrap()];
    message.extend(body);
    let mut record = vec![22, 3, 1, 0, u8::try_from(message.len()).unwrap()];
    record.extend(message);
    match say(address, &record)[..] {
        [21, 3, _, 0, 2, 2, alert, ..] => Greeted::Alert(alert),
        [22, 3, 3, ..] => Greeted::Hello,
        _ => Greeted::Nothing,
    }
}
