//! The size of a site.

use std::time::Duration;

/// The size of a site.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Pods of Quantum-2 switches with GPU hosts, each with eight ConnectX-7.
    pub ndr_pods: u32,
    /// Leaves of such a pod, and as many spines: a power of two up to 32.
    pub ndr_leaves: u32,
    /// Hosts of such a pod.
    pub gpu_hosts: u32,
    /// Pods of five to ten Quantum leaves and as many spines, with CPU hosts.
    pub hdr_pods: u32,
    /// Leaves of such a pod.
    pub hdr_leaves: u32,
    /// Hosts of such a pod.
    pub cpu_hosts: u32,
    /// Quantum-2 switches that join all pods.
    pub cores: u32,
    /// Quantum leaves below the cores with logins, storage and old hosts.
    pub service_leaves: u32,
    /// Hosts there.
    pub service_hosts: u32,
    /// Hosts of these with both ports of their adapters in use.
    pub two_ports: u32,
    /// For how long it is watched.
    pub length: Duration,
    /// From one sweep to the next.
    pub interval: Duration,
}

impl Size {
    /// The site of the public report, for a day.
    pub const REAL: Size = Size {
        ndr_pods: 8,
        ndr_leaves: 16,
        gpu_hosts: 60,
        hdr_pods: 4,
        hdr_leaves: 10,
        cpu_hosts: 180,
        cores: 84,
        service_leaves: 60,
        service_hosts: 483,
        two_ports: 100,
        length: Duration::from_secs(24 * 3600),
        interval: Duration::from_secs(300),
    };

    /// A tenth of it, for some hours.
    pub const SMALL: Size = Size {
        ndr_pods: 1,
        ndr_leaves: 8,
        gpu_hosts: 30,
        hdr_pods: 1,
        hdr_leaves: 5,
        cpu_hosts: 90,
        cores: 6,
        service_leaves: 6,
        service_hosts: 150,
        two_ports: 12,
        length: Duration::from_secs(4 * 3600),
        interval: Duration::from_secs(60),
    };
}

impl Size {
    /// The nodes, the switches among them, and the links.
    pub fn counts(&self) -> (usize, usize, usize) {
        let leaves = [self.ndr_pods * self.ndr_leaves, self.hdr_pods * self.hdr_leaves];
        let switches = self.cores + 2 * leaves[0] + 2 * leaves[1] + self.service_leaves;
        let hosts = self.hdr_pods * self.cpu_hosts + self.service_hosts;
        let adapters = 8 * self.ndr_pods * self.gpu_hosts + hosts;
        // From leaves to spines, and from there to cores.
        let between = leaves[0] * (32 + 32) + leaves[1] * (20 + 10) + self.service_leaves * 12;
        // Each switch has an aggregation node.
        let links = switches + between + adapters + self.two_ports;
        (2 * switches as usize + adapters as usize, switches as usize, links as usize)
    }
}

/// A cable that is bad on purpose.
#[derive(Clone, Debug)]
pub struct Planted {
    /// What is wrong with it.
    pub fault: &'static str,
    /// The ports at its ends, as the program names them.
    pub ends: [String; 2],
    /// When the fault begins.
    pub at: Duration,
}
