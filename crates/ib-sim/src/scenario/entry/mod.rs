//! The entries of a timeline: what each asks of the file, does to the fabric and says in words.

mod links;
mod load;
mod nodes;

use super::error::Problem;
use super::file::Entry;
use super::stage::Scene;

pub(super) use links::moves;

/// Plays one entry.
pub(super) fn play(scene: &mut Scene<'_, '_>, entry: &Entry) -> Result<(), Problem> {
    match entry {
        Entry::BadCable(entry) => links::bad_cable(scene, entry),
        Entry::Flap(entry) => links::flap(scene, entry),
        Entry::Unplug(entry) => links::unplug(scene, entry),
        Entry::Degrade(entry) => links::degrade(scene, entry),
        Entry::MoveCable(entry) => links::move_cable(scene, entry),
        Entry::SlowReceiver(entry) => load::slow_receiver(scene, entry),
        Entry::Burst(entry) => load::burst(scene, entry),
        Entry::Reboot(entry) => nodes::reboot(scene, entry),
        Entry::Clear(entry) => nodes::clear(scene, entry),
        Entry::Set(entry) => nodes::set(scene, entry),
        Entry::Silent(entry) => nodes::silent(scene, entry),
        Entry::Slow(entry) => nodes::slow(scene, entry),
        Entry::Busy(entry) => nodes::busy(scene, entry),
        Entry::LoseMads(entry) => nodes::lose_mads(scene, entry),
        Entry::MKey(entry) => nodes::m_key(scene, entry),
        Entry::LimitedMember(entry) => nodes::limited_member(scene, entry),
        Entry::NewMaster(entry) => nodes::new_master(scene, entry),
    }
}
