//! A performance management agent on a port's QP1.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::Ipv6Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use super::{kernel, port};

const HEADER: usize = 64;
const PACKET: usize = HEADER + 256;

const PERFORMANCE: u8 = 0x04;
const GET: u8 = 0x01;
const GET_RESPONSE: u8 = 0x81;
const QKEY: u32 = 0x8001_0000;

/// Registers, and responds until it is killed.
pub fn run(device: &str) {
    let mut umad = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(device)
        .unwrap_or_else(|e| panic!("{device}: {e}"));
    let smp = kernel::register(&umad, 0, 0x81, 0).expect_err("RoCE has a QP0");
    println!("no subnet management: {smp}");
    let agent = kernel::register(&umad, 1, PERFORMANCE, 1 << GET).expect("performance management");
    println!("registered");

    let mut waiting: VecDeque<(Instant, [u8; PACKET])> = VecDeque::new();
    loop {
        let now = Instant::now();
        while let Some(i) = waiting.iter().position(|(due, _)| *due <= now) {
            let (_, answer) = waiting.remove(i).expect("the one just found");
            send(&mut umad, &answer);
        }
        let next = waiting.iter().map(|(due, _)| due.saturating_duration_since(now)).min();
        kernel::wait(&umad, next);
        let mut packet = [0; PACKET];
        match umad.read(&mut packet) {
            Ok(length) => {
                report(&packet, length);
                let answer = answer(&packet, agent);
                let now = Instant::now();
                waiting
                    .extend(manner(packet[HEADER + 65]).iter().map(|delay| (now + *delay, answer)));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{device}: {error}"),
        }
    }
}

fn send(umad: &mut File, answer: &[u8; PACKET]) {
    assert_eq!(umad.write(answer).expect("write"), PACKET);
}

/// When a request for a port is answered, once for each response.
fn manner(of: u8) -> Vec<Duration> {
    match of {
        port::SILENT => vec![],
        // The kernel refuses the second while the first is in progress.
        port::TWICE => vec![Duration::ZERO, Duration::from_millis(200)],
        port::SLOW => vec![port::SLOW_BY],
        port::LATE => vec![port::LATE_BY],
        _ => vec![Duration::ZERO],
    }
}

fn be<const N: usize>(packet: &[u8], at: usize) -> u64 {
    packet[at..at + N].iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn report(packet: &[u8; PACKET], length: usize) {
    let declared = u32::from_ne_bytes([packet[16], packet[17], packet[18], packet[19]]);
    let gid: [u8; 16] = packet[36..52].try_into().expect("16 bytes");
    println!(
        "request bytes={length} length={declared} qpn={} lid={} grh={} gid={} method={:#x} tid={:#018x} \
         attribute={:#06x} port={}",
        be::<4>(packet, 20),
        be::<2>(packet, 28),
        packet[32],
        Ipv6Addr::from(gid),
        packet[HEADER + 3],
        be::<8>(packet, HEADER + 8),
        be::<2>(packet, HEADER + 16),
        packet[HEADER + 65],
    );
}

/// The response goes back to the request's sender, as the kernel reported it.
fn answer(request: &[u8; PACKET], agent: u32) -> [u8; PACKET] {
    let mut packet = *request;
    packet[0..4].copy_from_slice(&agent.to_ne_bytes());
    packet[4..16].fill(0); // no status, nothing to wait for, no retries
    packet[16..20].copy_from_slice(&256u32.to_ne_bytes());
    packet[24..28].copy_from_slice(&QKEY.to_be_bytes());
    let mad = &mut packet[HEADER..];
    mad[3] = GET_RESPONSE;
    let port = mad[65];
    mad[64..].fill(0);
    let mut put =
        |at: usize, bytes: &[u8]| mad[64 + at..64 + at + bytes.len()].copy_from_slice(bytes);
    match be::<2>(request, HEADER + 16) {
        // ClassPortInfo: versions, then extended width, XmitWait and QP1Dropped; answers within 1 s.
        0x01 => put(0, &[1, 1, 0x92, 0x00, 0, 0, 0, 18]),
        // PortCounters: each byte of its counters is one more than the last.
        0x12 => {
            put(1, &[port]);
            put(4, &(0x14..=0x3b).collect::<Vec<u8>>());
        }
        // PortCountersExtended: eight counters, each its number in every byte but the lowest.
        0x1d => {
            put(1, &[port]);
            (1..=8).for_each(|i: u8| put(8 * usize::from(i), &[i, i, i, i, i, i, i, 0xf0 | i]));
        }
        _ => mad[4..6].copy_from_slice(&0x000c_u16.to_be_bytes()),
    }
    packet
}
