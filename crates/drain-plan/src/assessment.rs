//! What a fabric loses while repairs are made.

use crate::net::{HostId, NodeId};

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// `None` for a number below 0 or above 1, and for NaN.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Share(share))
    }

    /// A number from 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The smallest flow in Gb/s that is this share of `whole`.
    pub(crate) fn smallest_of(self, whole: u64) -> u64 {
        let (mut below, mut enough) = (0, whole);
        while below < enough {
            let middle = below + (enough - below) / 2;
            if Share::ratio(middle, whole) >= self {
                enough = middle;
            } else {
                below = middle + 1;
            }
        }
        enough
    }

    /// 1 if the whole is 0: nothing can be lost. Rounded to the nearest number, like a share that a user writes, so
    /// 9 of 10 are at least 0.9.
    fn ratio(part: u64, whole: u64) -> Self {
        Share(if whole == 0 { 1.0 } else { part as f64 / whole as f64 })
    }
}

/// A host that loses its last path to other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutHost {
    /// It is not drained.
    pub host: HostId,
    /// The number of hosts to which it loses its last path; at least 1, drained hosts do not count.
    pub lost: usize,
    /// The number of hosts to which it keeps a path. 0: it is cut off from all.
    pub kept: usize,
}

/// An HCA that loses its last path to HCAs of other hosts, while another HCA of its host keeps paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutHca {
    /// The HCA.
    pub hca: NodeId,
    /// Its host, which is not drained.
    pub host: HostId,
    /// The number of HCAs to which it loses its last path; at least 1, those of drained hosts do not count.
    pub lost: usize,
    /// The number of HCAs of other hosts to which it keeps a path. 0: it is cut off from all.
    pub kept: usize,
}

/// The maximum flow from a leaf to all other leaves together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafCapacity {
    /// The leaf.
    pub leaf: NodeId,
    /// Gb/s before the repairs, above 0.
    pub before_gbps: u64,
    /// Gb/s during the repairs.
    pub after_gbps: u64,
}

impl LeafCapacity {
    /// The share that remains during the repairs.
    pub fn share(&self) -> Share {
        Share::ratio(self.after_gbps, self.before_gbps)
    }
}

/// What a fabric loses while a set of repairs is made in one maintenance window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// Hosts that lose their last path, in the order of the net. Empty if and only if each host keeps a path to all
    /// hosts to which it had one. Drained hosts are not in it, and nothing is said about paths to them.
    pub cut_hosts: Vec<CutHost>,
    /// HCAs that lose their last path, in the order of the net, while another HCA of their host keeps paths: a rail or
    /// plane of the host. They do not make the repairs unsafe.
    pub cut_hcas: Vec<CutHca>,
    /// Leaves with less capacity than before. The worst is the first; those with
    /// the same share are in the order of the net.
    pub reduced_leaves: Vec<LeafCapacity>,
}

impl Assessment {
    /// The leaf that keeps the smallest share of its capacity. `None`: each keeps all of it.
    pub fn worst_leaf(&self) -> Option<&LeafCapacity> {
        self.reduced_leaves.first()
    }

    /// The share that the worst leaf keeps, and so at least each other leaf; 1 if nothing is lost.
    pub fn remaining_capacity(&self) -> Share {
        self.worst_leaf().map_or(Share(1.0), LeafCapacity::share)
    }

    /// Whether no host loses its last path, and at least `min_capacity` remains.
    pub fn is_safe(&self, min_capacity: Share) -> bool {
        self.cut_hosts.is_empty() && self.remaining_capacity() >= min_capacity
    }
}
