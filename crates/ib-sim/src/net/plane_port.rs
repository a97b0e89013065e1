//! A port's place in a multi-plane system.

/// A port that is a plane of an aggregated port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanePort {
    /// The number of the aggregated port, from 1 on: of a switch in its system, of an adapter in its node.
    pub aggregated: u8,
    /// The plane, from 1 on.
    pub plane: u8,
    /// The number of planes of the aggregated port.
    pub planes: u8,
}
