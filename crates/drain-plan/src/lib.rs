#![doc = include_str!("../README.md")]

mod assessment;
mod baseline;
mod capacity;
mod cut;
mod flow;
mod islands;
mod net;
mod outage;
mod plan;
mod windows;

pub use assessment::{Assessment, CutHca, CutHost, LeafCapacity, Share};
pub use baseline::{Baseline, assess};
pub use net::{GroupId, HostId, Link, LinkId, LinkState, Net, Node, NodeId, Repair, UnknownPart};
pub use plan::{MaintenanceWindow, Plan, UnsafeRepair, WindowCount, plan};
pub use windows::EXACT_REPAIRS;
