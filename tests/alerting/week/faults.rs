//! What happens to links and devices.

use std::sync::Arc;

use ib_mad::rate::Width;
use ib_mad::{Counter, Guid};

use super::expected::{
    BOND_MEMBER_DOWN, CABLE_BAD, COUNTERS_SATURATED, DEVICE_DOWN, EXPORTER_DOWN, LINK_DOWN,
    LINK_FLAPPING, MANY_LINKS_BAD, NO_SUBNET_MANAGER, PORTS_WAIT, WIDTH_REDUCED,
};
use super::host::{Minute, Presence, SimHost, Slot, Value};
use super::plan::{FIRST_PORT, Plan};

/// The window in which losses of a link are flapping.
const WINDOW: Minute = 12 * 60;
const BOND: Slot = Slot(0);

/// The cable of a port is pulled, and put in again.
pub fn cable_pulled(plan: &mut Plan<'_>) {
    let (slot, until) = (plan.adapter(), plan.minutes(20..70));
    plan.at(0, move |host| host.set_cable(slot, FIRST_PORT, false));
    plan.at(until, move |host| host.set_cable(slot, FIRST_PORT, true));
    plan.expect(&LINK_DOWN, slot, 0..until);
}

fn enable(slot: Slot, is: bool) -> impl Fn(&mut SimHost) {
    move |host| host.line(slot, FIRST_PORT).is_enabled = is
}

/// `ip link set down` for maintenance, several times; of a bond, with its members.
pub fn set_down(plan: &mut Plan<'_>) {
    let bonded = plan.role == super::hardware::Role::Lag && plan.minutes(0..2) == 0;
    let slot = if bonded { BOND } else { plan.adapter() };
    for (from, until) in [(0, 25), (40, 43), (60, 110), (120, 135)] {
        plan.at(from, enable(slot, false));
        plan.at(until, enable(slot, true));
    }
}

/// Set down for maintenance, and set up again without its cable.
pub fn set_up_without_cable(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, enable(slot, false));
    plan.at(15, move |host| host.set_cable(slot, FIRST_PORT, false));
    plan.at(30, enable(slot, true));
    plan.at(75, move |host| host.set_cable(slot, FIRST_PORT, true));
    plan.expect(&LINK_DOWN, slot, 30..75);
}

/// The port of InfiniBand is disabled by an administrator.
pub fn port_disabled(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, enable(slot, false));
    plan.at(60, enable(slot, true));
}

/// One interface of a bond loses its carrier.
pub fn bond_member_down(plan: &mut Plan<'_>) {
    let (member, until) = (plan.minutes(0..2) as usize, plan.minutes(15..60));
    plan.at(0, move |host| host.line(BOND, FIRST_PORT).cables[member] = false);
    plan.at(until, move |host| host.line(BOND, FIRST_PORT).cables[member] = true);
    plan.expect_at(&BOND_MEMBER_DOWN, BOND, member + 1, 0..until);
}

/// Both interfaces of a bond lose their carrier.
pub fn bond_down(plan: &mut Plan<'_>) {
    plan.at(0, |host| host.set_cable(BOND, FIRST_PORT, false));
    plan.at(30, |host| host.set_cable(BOND, FIRST_PORT, true));
    plan.expect(&LINK_DOWN, BOND, 0..30);
}

/// The cable of a multi-plane port: all its planes, and the parent.
pub fn planes_down(plan: &mut Plan<'_>) {
    for (minute, is) in [(0, false), (40, true)] {
        plan.at(minute, move |host| {
            let lines = host.devices[..2].iter_mut().flat_map(|device| &mut device.lines);
            lines.for_each(|line| line.cables.fill(is));
        });
    }
    plan.expect(&LINK_DOWN, Slot(0), 0..40);
}

/// The cable of an adapter on two buses. The link is lost, and comes back, after the first function was read and
/// before the second was.
pub fn socket_direct_down(plan: &mut Plan<'_>) {
    for (minute, slot, is) in
        [(0, Slot(1), false), (1, Slot(0), false), (40, Slot(1), true), (41, Slot(0), true)]
    {
        plan.at(minute, move |host| host.set_cable(slot, FIRST_PORT, is));
    }
    plan.expect(&LINK_DOWN, Slot(0), 1..41);
}

pub fn two_losses(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.flap(slot, 0);
    plan.flap(slot, 30);
}

pub fn flapping(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    let losses = [0, plan.minutes(2..60), plan.minutes(70..120)];
    for loss in losses {
        plan.flap(slot, loss);
    }
    plan.expect(&LINK_FLAPPING, slot, losses[2] + 1..WINDOW);
}

/// Losses of milliseconds, which only LinkDowned shows.
pub fn counted_flapping(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    for loss in [0, 45, 100] {
        plan.at(loss, move |host| {
            host.count(slot, FIRST_PORT, Value::Counter(Counter::LinkDowned), 1);
        });
    }
    plan.expect(&LINK_FLAPPING, slot, 100..WINDOW);
}

/// Losses of milliseconds, of which the driver reports events.
pub fn reported_flapping(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    for loss in [0, 45, 100] {
        plan.at(loss, move |host| host.flap_by_event(slot, FIRST_PORT));
    }
    plan.expect(&LINK_FLAPPING, slot, 100..WINDOW);
}

const SYMBOL_ERRORS: Value = Value::Counter(Counter::SymbolErrors);

pub fn bad_cable(plan: &mut Plan<'_>) {
    let (slot, per_minute) = (plan.adapter(), u64::from(plan.minutes(8..40)));
    plan.at(0, move |host| host.grow(slot, FIRST_PORT, SYMBOL_ERRORS, per_minute));
    plan.at(60, move |host| host.grow(slot, FIRST_PORT, SYMBOL_ERRORS, 0));
    plan.expect(&CABLE_BAD, slot, 0..60);
}

pub fn burst(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, move |host| host.count(slot, FIRST_PORT, SYMBOL_ERRORS, 800));
}

/// Errors at the limit of a good cable.
pub fn few_errors(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    for minute in (0..180).step_by(10) {
        plan.at(minute, move |host| host.count(slot, FIRST_PORT, SYMBOL_ERRORS, 1));
    }
}

pub fn width_reduced(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    let set = |width| move |host: &mut SimHost| host.line(slot, FIRST_PORT).width = width;
    plan.at(0, set(Width::X1));
    plan.at(45, set(Width::X4));
    plan.expect(&WIDTH_REDUCED, slot, 0..45);
}

/// A port is connected to another subnet, or back to back, and waits for a subnet manager.
pub fn lone_port_waits(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.flap(slot, 0);
    plan.at(1, move |host| host.line(slot, FIRST_PORT).is_activated = false);
    plan.flap(slot, 150);
    plan.at(151, move |host| host.line(slot, FIRST_PORT).is_activated = true);
}

/// The only subnet manager does not start after a power failure.
pub fn cold_start(plan: &mut Plan<'_>) {
    plan.reboot(0, 8, 30);
    if plan.nth == 0 {
        plan.expect(&NO_SUBNET_MANAGER, Slot(0), 8..30);
    }
}

/// The subnet manager ends, and two of three hosts are rebooted.
pub fn manager_ends(plan: &mut Plan<'_>) {
    if plan.nth < 2 {
        plan.reboot(0, 6, 30);
    }
    if plan.nth == 0 {
        plan.expect(&PORTS_WAIT, Slot(0), 6..30);
    }
}

/// The switch of a fabric fails.
pub fn switch_fails(plan: &mut Plan<'_>) {
    for slot in [Slot(0), Slot(1)] {
        plan.at(0, move |host| host.set_cable(slot, FIRST_PORT, false));
        plan.at(30, move |host| host.set_cable(slot, FIRST_PORT, true));
        plan.expect(&LINK_DOWN, slot, 0..30);
    }
    if plan.nth == 0 {
        plan.expect(&MANY_LINKS_BAD, Slot(0), 0..30);
    }
}

pub fn rebooted(plan: &mut Plan<'_>) {
    let down = plan.minutes(4..10);
    plan.reboot(0, down, down + 2);
}

pub fn switched_off(plan: &mut Plan<'_>) {
    plan.reboot(0, 30, 32);
    plan.expect(&EXPORTER_DOWN, Slot(0), 1..30);
}

pub fn exporter_restarted(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.flap(slot, 0);
    plan.at(30, |host| host.set_exporter(true));
    plan.flap(slot, 60);
    plan.at(90, |host| host.set_exporter(true));
}

fn present(slot: Slot, is: bool) -> impl Fn(&mut SimHost) {
    move |host| host.set_present(slot, is)
}

/// Absent in one reading, or in none.
pub fn driver_reloaded(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, present(slot, false));
    plan.at(1, present(slot, true));
    plan.at(200, move |host| host.renew(slot));
}

pub fn renamed(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    let name = Arc::clone(&plan.host.at(slot).device.name);
    plan.at(0, move |host| host.at(slot).device.name = format!("rdma-{}", slot.0).into());
    plan.at(120, move |host| host.at(slot).device.name = Arc::clone(&name));
}

/// The GUID of the card that replaces that of a device.
fn replacement(plan: &mut Plan<'_>, slot: Slot) -> Guid {
    let before = plan.host.at(slot).device.info.guid.unwrap();
    Guid(before.0 & !0xff00 | u64::from(plan.minutes(1..255)) << 8)
}

/// A card that lost its link is swapped while the host is off; the new one loses its link, too.
pub fn card_swapped(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    let guid = replacement(plan, slot);
    plan.flap(slot, 0);
    plan.flap(slot, 20);
    plan.reboot(60, 12, 14);
    plan.at(65, move |host| host.set_guid(slot, guid));
    plan.flap(slot, 120);
    plan.swapped = Some((slot, guid));
}

/// The same while the host runs.
pub fn card_swapped_hot(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    let guid = replacement(plan, slot);
    plan.flap(slot, 0);
    plan.at(60, present(slot, false));
    plan.at(63, move |host| {
        host.set_guid(slot, guid);
        host.set_present(slot, true);
    });
    plan.flap(slot, 100);
    plan.flap(slot, 120);
    plan.swapped = Some((slot, guid));
}

pub fn device_disappears(plan: &mut Plan<'_>) {
    let (slot, until) = (plan.adapter(), plan.minutes(20..80));
    plan.at(0, present(slot, false));
    plan.at(until, present(slot, true));
    plan.expect(&DEVICE_DOWN, slot, 0..until);
}

fn presence(slot: Slot, presence: Presence) -> impl Fn(&mut SimHost) {
    move |host| host.at(slot).presence = presence.clone()
}

pub fn device_hangs(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, presence(slot, Presence::Hanging));
    plan.at(20, presence(slot, Presence::Present));
    plan.expect(&DEVICE_DOWN, slot, 0..20);
}

pub fn device_slow(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, presence(slot, Presence::Slow));
    plan.at(120, presence(slot, Presence::Present));
}

/// The link of a slow device is lost: a minute later than on others it is seen.
pub fn slow_device_loses_link(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, presence(slot, Presence::Slow));
    plan.at(10, move |host| host.set_cable(slot, FIRST_PORT, false));
    plan.at(50, move |host| host.set_cable(slot, FIRST_PORT, true));
    plan.at(70, presence(slot, Presence::Present));
    plan.expect(&LINK_DOWN, slot, 11..51);
}

pub fn counters_cleared(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, move |host| host.count(slot, FIRST_PORT, SYMBOL_ERRORS, 900));
    for minute in [20, 40, 60] {
        plan.at(minute, move |host| host.clear_counters(slot));
    }
}

pub fn counter_saturated(plan: &mut Plan<'_>) {
    let slot = plan.adapter();
    plan.at(0, move |host| {
        let reading = &mut host.at(slot).device.ports[0].reading;
        reading.set(Counter::SymbolErrors, 0xffff);
        reading.saturated.insert(Counter::SymbolErrors);
    });
    plan.at(100, move |host| host.clear_counters(slot));
    plan.expect(&COUNTERS_SATURATED, slot, 0..100);
}
