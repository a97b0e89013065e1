//! What happens to the traffic of a host, and what pods and GPUs do all day.

use ib_mad::{Counter, Guid};
use rdma_host::model::IpoibMode;

use super::expected::{
    Alert, CNP_RATE_HIGH, CONNECTIONS_LOST, IPOIB_DATAGRAM, PACKETS_DISCARDED, PAUSED, PFC_STORM,
    RETRANSMISSIONS,
};
use super::hardware::{self, Role};
use super::host::{Minute, Slot, Value};
use super::plan::{FIRST_PORT, Plan};

/// A number grows for some time.
fn grows(plan: &mut Plan<'_>, alert: &'static Alert, value: Value, per_minute: u64) {
    let slot = plan.adapter();
    plan.at(0, move |host| host.grow(slot, FIRST_PORT, value, per_minute));
    plan.at(40, move |host| host.grow(slot, FIRST_PORT, value, 0));
    plan.expect(alert, slot, 0..40);
}

pub fn retransmissions(plan: &mut Plan<'_>) {
    let file = if plan.role == Role::Bnxt { "seq_err_naks_rcvd" } else { "packet_seq_err" };
    grows(plan, &RETRANSMISSIONS, Value::Hw(file), 6_000);
}

pub fn notifications(plan: &mut Plan<'_>) {
    let file = match plan.role {
        Role::Bnxt => "tx_cnp_pkts",
        Role::Irdma => "cnpSent",
        _ => "np_cnp_sent",
    };
    grows(plan, &CNP_RATE_HIGH, Value::Hw(file), 900_000);
}

pub fn storm(plan: &mut Plan<'_>) {
    grows(plan, &PFC_STORM, Value::Ethernet("tx_prio3_pause_duration"), 57_000_000);
}

pub fn paused(plan: &mut Plan<'_>) {
    grows(plan, &PAUSED, Value::Ethernet("rx_prio3_pause_duration"), 20_000_000);
}

pub fn discards(plan: &mut Plan<'_>) {
    grows(plan, &PACKETS_DISCARDED, Value::Counter(Counter::XmitDiscards), 600);
}

pub fn connections_lost(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    let file = if plan.role == Role::Bnxt {
        "max_retry_exceeded"
    } else {
        "req_transport_retries_exceeded"
    };
    plan.at(0, move |host| host.count(slot, FIRST_PORT, Value::Hw(file), 3));
    plan.expect(&CONNECTIONS_LOST, slot, 0..8);
}

pub fn datagrams(plan: &mut Plan<'_>) {
    let slot = hardware::first_adapter(plan.role);
    assert_eq!(plan.host.at(slot).device.ports[0].netdevs[0].ipoib, Some(IpoibMode::Datagram));
    for (minute, mtu) in [(0, 2044), (90, 4092)] {
        plan.at(minute, move |host| {
            host.at(slot).device.ports[0].netdevs[0].mtu = Some(mtu);
        });
    }
    plan.expect(&IPOIB_DATAGRAM, slot, 0..90);
}

/// What goes on all the time, for so many minutes, without a fault.
pub fn everyday(plan: &mut Plan<'_>, minutes: Minute) {
    match plan.role {
        Role::InfiniBand | Role::Nvlink => pods(plan, minutes),
        Role::Switchdev => switch_ports(plan, minutes),
        _ => {}
    }
    if plan.role == Role::Nvlink {
        gpu_resets(plan, minutes);
    }
    let cron = plan.minutes(0..60) + 120;
    // Where none runs, saturated counters stay so.
    let days = if plan.role == Role::Small { 0 } else { minutes.div_ceil(DAY) };
    for day in 0..days {
        plan.at(day * DAY + cron, |host| {
            host.slots().into_iter().for_each(|slot| host.clear_counters(slot));
        });
    }
    for _ in 0..minutes / (8 * 60) {
        let minute = plan.minutes(0..minutes);
        plan.at(minute, |host| host.scrape_fails = true);
    }
}

const DAY: Minute = 24 * 60;

/// The GUIDs that an operator has for the pods of a virtual function.
const POOL: u64 = 3;

/// Each pod gets a virtual function with another GUID, and loses it: the hypervisor or the operator makes it Active,
/// and sets it Down while its cable has a link.
fn pods(plan: &mut Plan<'_>, minutes: Minute) {
    let pool = plan.rng.next_u64() & 0xffff_ff00;
    for slot in hardware::virtual_functions(plan.role) {
        let mut minute = plan.minutes(0..60);
        while minute < minutes {
            let (runs, waits) = (plan.minutes(10..200), plan.minutes(1..30));
            // Never the same one for two pods at a time.
            let guid = 0x0c42_a104_0000_0000 | pool | (slot.0 as u64 * POOL + plan.rng.below(POOL));
            let guid = Guid(guid);
            let stays = plan.minutes(0..2) == 0;
            plan.at(minute, move |host| {
                host.set_guid(slot, guid);
                host.set_present(slot, true);
                host.line(slot, FIRST_PORT).is_activated = true;
            });
            plan.at(minute + runs, move |host| {
                host.line(slot, FIRST_PORT).is_activated = false;
                // Moved to the network namespace of the pod, or left on the host.
                host.set_present(slot, stays);
            });
            minute += runs + waits;
        }
    }
}

/// Representors lose their carrier with their pods; a sub-function comes and goes.
fn switch_ports(plan: &mut Plan<'_>, minutes: Minute) {
    for port in 2..6 {
        let mut minute = plan.minutes(0..60);
        while minute < minutes {
            let (on, off) = (plan.minutes(5..90), plan.minutes(1..40));
            let is_admin = plan.minutes(0..2) == 0;
            for (after, is) in [(0, false), (off, true)] {
                plan.at(minute + after, move |host| {
                    let line = host.line(Slot(0), port);
                    if is_admin {
                        line.is_enabled = is;
                    } else {
                        line.cables.fill(is);
                    }
                });
            }
            minute += on + off;
        }
    }
    let mut minute = plan.minutes(0..60);
    while minute < minutes {
        let (on, off) = (plan.minutes(10..120), plan.minutes(2..60));
        plan.at(minute, |host| host.set_present(hardware::SUB_FUNCTION, true));
        plan.at(minute + on, |host| host.set_present(hardware::SUB_FUNCTION, false));
        minute += on + off;
    }
}

/// A reset of the GPUs resets the links of NVSwitches.
fn gpu_resets(plan: &mut Plan<'_>, minutes: Minute) {
    let mut minute = plan.minutes(0..120);
    while minute < minutes {
        let length = plan.minutes(1..20);
        for slot in [Slot(0), Slot(1), Slot(2)] {
            plan.at(minute, move |host| host.set_cable(slot, FIRST_PORT, false));
            plan.at(minute + 1, move |host| {
                host.set_cable(slot, FIRST_PORT, true);
                host.line(slot, FIRST_PORT).is_activated = false;
            });
            plan.at(minute + length + 1, move |host| {
                host.line(slot, FIRST_PORT).is_activated = slot != Slot(2);
            });
        }
        minute += length + plan.minutes(60..300);
    }
}
