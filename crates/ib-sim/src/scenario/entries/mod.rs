//! The entries of a timeline. Each has a structure with its keys, and a function of the same name that applies it: it
//! adds changes and effects to the timeline, and describes them in a sentence.

mod cables;
mod counters;
mod keys;
mod links;
mod nodes;
mod subnet_manager;
mod traffic;

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problem;
use super::timeline::Timeline;

pub use cables::move_cables;

macro_rules! entries {
    ($($name:ident $label:literal $file:ident::$apply:ident;)+) => {
        /// An entry of the timeline.
        #[derive(Clone, Debug, Deserialize)]
        pub enum TimelineEntry { $(#[serde(rename = $label)] $name($file::$name)),+ }

        impl TimelineEntry {
            /// Its name in the file.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => $label),+ }
            }

            /// Its time; the start if the file does not say.
            pub fn at(&self) -> Duration {
                let at = match self { $(Self::$name(entry) => entry.at),+ };
                at.map_or(Duration::ZERO, |at| at.0)
            }

            /// Applies it to the timeline, and describes it in a sentence.
            pub fn apply(&self, timeline: &mut Timeline) -> Result<String, Problem> {
                match self { $(Self::$name(entry) => $file::$apply(entry, timeline)),+ }
            }
        }

        /// The names of all entries of a timeline.
        pub const ENTRIES: &[&str] = &[$($label),+];
    };
}

entries! {
    BadCable "bad-cable" cables::bad_cable;
    DirtyConnector "dirty-connector" cables::dirty_connector;
    HotModule "hot-module" cables::hot_module;
    SwapCable "swap-cable" cables::swap_cable;
    Flap "flap" links::flap;
    Unplug "unplug" links::unplug;
    Degrade "degrade" links::degrade;
    SlowReceiver "slow-receiver" traffic::slow_receiver;
    Burst "burst" traffic::burst;
    Reboot "reboot" nodes::reboot;
    Clear "clear" counters::clear;
    Set "set" counters::set;
    Silent "silent" nodes::silent;
    Slow "slow" nodes::slow;
    Busy "busy" nodes::busy;
    LoseMads "lose-mads" nodes::lose_mads;
    MKey "m-key" subnet_manager::m_key;
    Registers "registers" nodes::registers;
    FrontPanel "front-panel" nodes::front_panel;
    StateTable "state-table" nodes::state_table;
    VsKey "vs-key" subnet_manager::vs_key;
    LimitedMember "limited-member" subnet_manager::limited_member;
    MoveCable "move-cable" cables::move_cable;
    NewMaster "new-master" subnet_manager::new_master;
}
